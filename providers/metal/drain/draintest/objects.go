package draintest

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	certificates "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	masters   = "system:masters"  // a group of administrators
	operators = "stoke:operators" // one as long as a ClusterRoleBinding of this name is there
	discovery = "(discovery)"     // the resource of the paths that list the served kinds
)

// served are the kinds that administrators see, by group and version.
var served = []struct {
	group, version, kind, resource string
	namespaced                     bool
}{
	{"", "v1", "Namespace", "namespaces", false}, {"", "v1", "Node", "nodes", false}, {"", "v1", "Pod", "pods", true},
	{"", "v1", "Secret", "secrets", true}, {"", "v1", "ConfigMap", "configmaps", true}, {"", "v1", "Service", "services", true},
	{"", "v1", "PersistentVolume", "persistentvolumes", false}, {"apps", "v1", "DaemonSet", "daemonsets", true},
	{"apps", "v1", "Deployment", "deployments", true}, {"node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", false},
	{"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false},
	{"resource.k8s.io", "v1", "ResourceSlice", "resourceslices", false},
	{"certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", false},
}

// Reset removes all that is stored, and makes the namespaces of a new cluster.
func (c *Cluster) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.nodes)
	clear(c.pods)
	c.objects, c.applied = map[string]map[string]any{}, map[string]map[string]any{}
	c.store(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "kube-system"}})
}

// Put stores an object as another user does.
func (c *Cluster) Put(object map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(object)
}

// Object returns a stored object, or nil.
func (c *Cluster) Object(resource, namespace, name string) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[keyOf(resource, namespace, name)]
}

// Remove removes an object.
func (c *Cluster) Remove(resource, namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, keyOf(resource, namespace, name))
}

// Names returns the names of the stored objects of a resource, nodes too, sorted.
func (c *Cluster) Names(resource string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if resource == "nodes" {
		return slices.Sorted(maps.Keys(c.nodes))
	}
	var all []string
	for key := range c.objects {
		if strings.HasPrefix(key, resource+" ") {
			all = append(all, key[strings.LastIndexByte(key, '/')+1:])
		}
	}
	slices.Sort(all)
	return all
}

func keyOf(resource, namespace, name string) string { return resource + " " + namespace + "/" + name }

// store is under mu. Workloads are ready at once.
func (c *Cluster) store(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	resource := ""
	for _, k := range served {
		if k.kind == object["kind"] {
			resource = k.resource
		}
	}
	key := keyOf(resource, namespace, name)
	c.version++
	meta["resourceVersion"] = fmt.Sprint(c.version)
	meta["uid"] = fmt.Sprintf("%s-%d", key, c.version)
	if was, ok := c.objects[key]["metadata"].(map[string]any); ok {
		meta["uid"] = was["uid"]
	}
	switch object["kind"] {
	case "DaemonSet":
		meta["generation"] = int64(c.version)
		object["status"] = map[string]any{"observedGeneration": int64(c.version), "desiredNumberScheduled": int64(1), "currentNumberScheduled": int64(1),
			"updatedNumberScheduled": int64(1), "numberAvailable": int64(1), "numberReady": int64(1), "numberMisscheduled": int64(0)}
	case "Deployment":
		meta["generation"] = int64(c.version)
		object["status"] = map[string]any{"observedGeneration": int64(c.version), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1),
			"availableReplicas": int64(1), "conditions": []any{map[string]any{"type": "Available", "status": "True"}}}
	}
	c.objects[key] = object
	return object
}

// administered answers administrators, under mu; known is false for requests that nodes
// get the same answer to.
func (c *Cluster) administered(r *request) (object any, err error, known bool) {
	switch {
	case r.resource == discovery:
		object, err = discovered(r.URL.Path)
		return object, err, true
	case r.resource == "nodes" && r.verb != "delete", r.resource == "leases":
		return nil, nil, false
	case r.resource == "nodes":
		object, err = c.deleteNode(r)
		return object, err, true
	case r.resource == "pods" && r.verb == "list":
		r.node, _ = strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")
		return nil, nil, false
	case r.resource == "pods":
		p := c.pods[r.namespace+"/"+r.name]
		if p == nil {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, r.name), true
		}
		r.node = p.Spec.NodeName
		return nil, nil, false
	case r.resource == "certificatesigningrequests":
		object, err = c.signing(r)
		return object, err, true
	}
	object, err = c.stored(r)
	return object, err, true
}

// discovered returns the served kinds as API servers do that do not aggregate.
func discovered(at string) (any, error) {
	parts := strings.Split(strings.Trim(at, "/"), "/")
	switch {
	case at == "/version":
		return map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}, nil
	case at == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, nil
	case at == "/apis":
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, k := range served {
			if k.group != "" && !slices.ContainsFunc(list.Groups, func(g metav1.APIGroup) bool { return g.Name == k.group }) {
				v := metav1.GroupVersionForDiscovery{GroupVersion: k.group + "/" + k.version, Version: k.version}
				list.Groups = append(list.Groups, metav1.APIGroup{Name: k.group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
			}
		}
		return list, nil
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: strings.Join(parts[1:], "/")}
	for _, k := range served {
		if strings.TrimPrefix(k.group+"/"+k.version, "/") == list.GroupVersion {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.resource, Kind: k.kind, Namespaced: k.namespaced})
		}
	}
	return list, nil
}

func (c *Cluster) deleteNode(r *request) (any, error) {
	n := c.nodes[r.name]
	if n == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, r.name)
	}
	if err := preconditions(r, n.UID); err != nil {
		return nil, err
	}
	delete(c.nodes, r.name)
	for name, p := range c.pods {
		if p.Spec.NodeName == r.name {
			delete(c.pods, name)
		}
	}
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
}

// preconditions refuses a deletion of another object of the name.
func preconditions(r *request, uid types.UID) error {
	var options metav1.DeleteOptions
	if text, err := io.ReadAll(r.Body); err != nil || len(text) > 0 && json.Unmarshal(text, &options) != nil {
		return apierrors.NewBadRequest("the options of a deletion cannot be read")
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != uid {
		return apierrors.NewConflict(schema.GroupResource{Resource: r.resource}, r.name, errors.New("the UID in the precondition does not match the UID in record"))
	}
	return nil
}

// signing approves and signs requests for certificates, in one step.
func (c *Cluster) signing(r *request) (any, error) {
	if r.verb == "delete" {
		return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
	}
	var csr certificates.CertificateSigningRequest
	if err := json.NewDecoder(r.Body).Decode(&csr); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	csr.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
	if r.sub != "approval" {
		return csr, nil
	}
	block, _ := pem.Decode(csr.Spec.Request)
	if block == nil {
		return nil, apierrors.NewBadRequest("the request is not in PEM")
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	csr.Status.Certificate, err = c.certify(&x509.Certificate{Subject: asked.Subject, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, asked.PublicKey)
	return csr, err
}

// stored reads and changes objects of all other kinds.
func (c *Cluster) stored(r *request) (any, error) {
	i := slices.IndexFunc(served, func(s struct {
		group, version, kind, resource string
		namespaced                     bool
	}) bool {
		return s.group == r.group && s.resource == r.resource
	})
	of, key := schema.GroupResource{Group: r.group, Resource: r.resource}, keyOf(r.resource, r.namespace, r.name)
	if i < 0 {
		return nil, apierrors.NewNotFound(of, r.name)
	}
	object := c.objects[key]
	switch {
	case r.verb == "list":
		items := []any{}
		for _, key := range slices.Sorted(maps.Keys(c.objects)) {
			if strings.HasPrefix(key, r.resource+" "+r.namespace) {
				items = append(items, c.objects[key])
			}
		}
		version := strings.TrimPrefix(served[i].group+"/"+served[i].version, "/")
		return map[string]any{"apiVersion": version, "kind": served[i].kind + "List", "metadata": map[string]any{}, "items": items}, nil
	case r.verb == "patch" && r.Header.Get("Content-Type") == string(types.ApplyPatchType):
		return c.apply(r, key, served[i].namespaced)
	case object == nil:
		return nil, apierrors.NewNotFound(of, r.name)
	case r.verb == "get":
		return object, nil
	case r.verb == "delete":
		uid, _ := object["metadata"].(map[string]any)["uid"].(string)
		if err := preconditions(r, types.UID(uid)); err != nil {
			return nil, err
		}
		delete(c.objects, key)
		delete(c.applied, key)
		return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess}, nil
	}
	return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Message: r.String()}}
}

// apply is a server-side apply by one manager: fields that it applied before and does not
// apply now are removed. Lists are one value.
func (c *Cluster) apply(r *request, key string, namespaced bool) (any, error) {
	try, err := dry(r)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var now, object map[string]any
	if err := json.Unmarshal(text, &now); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if namespaced && c.objects[keyOf("namespaces", "", r.namespace)] == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, r.namespace)
	}
	if text, err = json.Marshal(c.objects[key]); err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		return nil, err
	}
	if object == nil {
		object = map[string]any{}
	}
	drop(object, c.applied[key], now)
	merged, _ := merge(object, now).(map[string]any)
	if try {
		return merged, nil
	}
	c.applied[key] = now
	return c.store(merged), nil
}

// drop removes fields from an object that were applied before and are not now.
func drop(object, before, now map[string]any) {
	for name, was := range before {
		is, still := now[name]
		if !still {
			delete(object, name)
			continue
		}
		below, isMap := object[name].(map[string]any)
		applied, wasMap := was.(map[string]any)
		next, staysMap := is.(map[string]any)
		if isMap && wasMap && staysMap {
			drop(below, applied, next)
		}
	}
}
