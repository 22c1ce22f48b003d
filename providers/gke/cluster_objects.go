package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// Only the cluster itself removes the cloud objects that it has made: destroying
// the cluster first leaves them behind, and they are billed.

// The kinds that destroy_cloud_objects names.
const (
	loadBalancers = "load_balancers"
	ingresses     = "ingresses"
	gateways      = "gateways"
	volumes       = "volumes"
)

// cloudKinds are the kinds of objects that live in the cloud.
var cloudKinds = []struct {
	kind string
	of   schema.GroupVersionResource
}{
	{ingresses, schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}},
	{gateways, schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}},
	{loadBalancers, schema.GroupVersionResource{Version: "v1", Resource: "services"}},
	{volumes, schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}},
}

var claims = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}

// cloudObject is one of them.
type cloudObject struct {
	kind            string
	of              schema.GroupVersionResource // what is deleted
	namespace, name string
	uid             types.UID
	handle          string // of a volume: the disk or share
	retained        bool   // a volume that is to outlive its claim
}

func (o cloudObject) String() string {
	text := o.name
	if o.namespace != "" {
		text = o.namespace + "/" + o.name
	}
	if o.handle != "" {
		text += " (" + o.handle + ")"
	}
	return text
}

// listed is how long the API server may take to say what there is, and goneWithin
// how long what is deleted may take to go.
const (
	listed     = 30 * time.Second
	goneWithin = 10 * time.Minute
)

// clear deletes the cluster's declared cloud objects, and reports the others. A
// cluster that cannot be reached is destroyed all the same.
func (m *clusterModel) clear(ctx context.Context, j job) error {
	conn, known := connect.StoredConnection(ctx, m.Access)
	if conn == nil || !known || conn.Endpoint == "" {
		return nil // it was never finished
	}
	at := path.Root("destroy_cloud_objects")
	ctx, stop := j.cloud.Stoppable(ctx)
	defer stop()
	limited, cancel := context.WithTimeout(ctx, listed)
	defer cancel()
	client, err := j.clusters.Get(limited, *conn)
	var found []cloudObject
	if err == nil {
		found, err = cloudObjects(limited, client.Dynamic)
	}
	if stopped := cloud.Interrupted(limited); err != nil && stopped != nil {
		return fmt.Errorf("what the cluster has in the cloud is not listed: %w", stopped)
	}
	if err != nil {
		j.diags.AddAttributeWarning(at, "The objects that the cluster left behind are not known", "Disks, Filestore shares and load balancers that it made stay, and bill; its API server did not say which: "+sentence(err))
		return nil
	}
	declared := list(m.CloudObjects)
	var doomed, staying []cloudObject
	for _, o := range found {
		if slices.Contains(declared, o.kind) && !o.retained {
			doomed = append(doomed, o)
		} else {
			staying = append(staying, o)
		}
	}
	for _, k := range cloudKinds {
		var names []string
		for _, o := range staying {
			if o.kind == k.kind {
				names = append(names, o.String())
			}
		}
		if len(names) > 0 {
			j.diags.AddAttributeWarning(at, "The cluster leaves things behind", fmt.Sprintf("These %s stay in the cloud, and bill: %s. Volumes with the policy Retain always stay.", strings.ReplaceAll(k.kind, "_", " "), strings.Join(names, ", ")))
		}
	}
	return removeObjects(ctx, j, client.Dynamic, doomed)
}

// cloudObjects lists what lives in the cloud. A kind that the cluster does not have
// has no objects.
func cloudObjects(ctx context.Context, api dynamic.Interface) ([]cloudObject, error) {
	var all []cloudObject
	for _, k := range cloudKinds {
		objects, err := api.Resource(k.of).List(ctx, meta.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", k.of.Resource, err)
		}
		for i := range objects.Items {
			if o, ok := cloudObjectOf(k.kind, k.of, &objects.Items[i]); ok {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// cloudObjectOf reports whether an object has a counterpart in the cloud.
func cloudObjectOf(kind string, of schema.GroupVersionResource, u *unstructured.Unstructured) (cloudObject, bool) {
	o := cloudObject{kind: kind, of: of, namespace: u.GetNamespace(), name: u.GetName(), uid: u.GetUID()}
	text := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, fields...)
		return s
	}
	switch kind {
	case loadBalancers:
		return o, text("spec", "type") == "LoadBalancer"
	case ingresses:
		class := firstNonEmpty(text("spec", "ingressClassName"), u.GetAnnotations()["kubernetes.io/ingress.class"])
		return o, class == "" || strings.HasPrefix(class, "gce") // others are made by pods, as Services
	case gateways:
		return o, strings.HasPrefix(text("spec", "gatewayClassName"), "gke-")
	}
	switch text("spec", "csi", "driver") {
	case "pd.csi.storage.gke.io", "filestore.csi.storage.gke.io", "lustre.csi.storage.gke.io", "parallelstore.csi.storage.gke.io":
		o.handle = text("spec", "csi", "volumeHandle")
	default:
		o.handle = text("spec", "gcePersistentDisk", "pdName")
	}
	o.retained = text("spec", "persistentVolumeReclaimPolicy") != "Delete"
	return o, o.handle != ""
}

// removeObjects deletes exactly the listed objects, and waits until they no longer
// exist: then their cloud objects are deleted, too. A volume is deleted with its
// claim.
func removeObjects(ctx context.Context, j job, api dynamic.Interface, doomed []cloudObject) error {
	var deleted []cloudObject
	for _, o := range doomed {
		cloud.ReportProgress(ctx, -1, "deleting %s", o)
		of, namespace, name, uid := o.of, o.namespace, o.name, o.uid
		if o.kind == volumes {
			pv, err := api.Resource(of).Get(ctx, name, meta.GetOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read the volume %s: %w", o, err)
			}
			if now, ok := cloudObjectOf(volumes, of, pv); !ok || now.uid != uid || now.handle != o.handle || now.retained {
				j.diags.AddAttributeWarning(path.Root("destroy_cloud_objects"), "A volume has changed", fmt.Sprintf("%s was "+
					"listed for deletion, and since then it was replaced, or must be retained. It stays.", o))
				continue
			}
			ref, claimed, _ := unstructured.NestedStringMap(pv.Object, "spec", "claimRef")
			if claimed && ref["uid"] != "" {
				of, namespace, name, uid = claims, ref["namespace"], ref["name"], types.UID(ref["uid"])
			}
		}
		err := api.Resource(of).Namespace(namespace).Delete(ctx, name, meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // of another uid: it is gone
			return fmt.Errorf("delete %s: %w", o, err)
		}
		deleted = append(deleted, o)
	}
	for _, o := range deleted {
		if err := goneObject(ctx, j, api, o); err != nil {
			return err
		}
	}
	return nil
}

func goneObject(ctx context.Context, j job, api dynamic.Interface, o cloudObject) error {
	limited, cancel := context.WithTimeout(ctx, goneWithin)
	defer cancel()
	err := j.cloud.WaitUntil(limited, o.name, func(ctx context.Context) (bool, error) {
		u, err := api.Resource(o.of).Namespace(o.namespace).Get(ctx, o.name, meta.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && u.GetUID() != o.uid {
			return true, nil
		}
		cloud.ReportProgress(ctx, -1, "waiting until %s is deleted", o)
		return false, err
	})
	if running := new(cloud.RunningError); errors.As(err, &running) && ctx.Err() == nil {
		return fmt.Errorf("%s is still being deleted after %v: look what uses it (kubectl describe), and apply again, or take its kind out of destroy_cloud_objects", o, goneWithin)
	}
	return err
}
