package storetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	kinds       = map[string]string{"secrets": "Secret", "leases": "Lease"}
	apiVersions = map[string]string{"secrets": "v1", "leases": "coordination.k8s.io/v1"}
)

// clusterObject is a Secret or a Lease.
type clusterObject interface {
	meta() *metav1.ObjectMeta
	named() *metav1.TypeMeta
	// problem returns the fault of the object's data, "" if there is none.
	problem() string
}

type secret struct{ core.Secret }

func (s *secret) meta() *metav1.ObjectMeta { return &s.ObjectMeta }
func (s *secret) named() *metav1.TypeMeta  { return &s.TypeMeta }

func (s *secret) problem() string {
	total := 0
	for key, value := range s.Data {
		if len(validation.IsConfigMapKey(key)) > 0 {
			return fmt.Sprintf("data[%s]: Invalid value: %q", key, key)
		}
		total += len(value)
	}
	if total > core.MaxSecretSize {
		return fmt.Sprintf("data: Too long: may not be more than %d bytes", core.MaxSecretSize)
	}
	return ""
}

type lease struct{ coordination.Lease }

func (l *lease) meta() *metav1.ObjectMeta { return &l.ObjectMeta }
func (l *lease) named() *metav1.TypeMeta  { return &l.TypeMeta }

func (l *lease) problem() string {
	switch s := l.Spec; {
	case s.HolderIdentity != nil && *s.HolderIdentity == "":
		return `spec.holderIdentity: Invalid value: "": must not be empty`
	case s.LeaseDurationSeconds != nil && *s.LeaseDurationSeconds <= 0:
		return fmt.Sprintf("spec.leaseDurationSeconds: Invalid value: %d: must be greater than 0", *s.LeaseDurationSeconds)
	case s.LeaseTransitions != nil && *s.LeaseTransitions < 0:
		return fmt.Sprintf("spec.leaseTransitions: Invalid value: %d: must be greater than or equal to 0", *s.LeaseTransitions)
	}
	return ""
}

func newObject(resource string) clusterObject {
	if resource == "leases" {
		return &lease{}
	}
	return &secret{}
}

// write creates or updates an object.
func (c *Cluster) write(q clusterRequest) (int, any) {
	o := newObject(q.resource)
	if err := json.Unmarshal(q.body, o); err != nil {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the object provided is unrecognized: "+err.Error())
	}
	if s, ok := o.(*secret); ok {
		s.take()
	}
	m := o.meta()
	if bad := q.misplaced(o); bad != "" {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, bad)
	}
	m.Namespace = q.namespace
	if wrong := invalid(o); wrong != "" {
		return q.unprocessable(m.Name, wrong)
	}
	key := m.Namespace + "/" + m.Name
	before, found := c.objects[q.resource][key]
	if q.verb == "create" {
		if found {
			return status(http.StatusConflict, metav1.StatusReasonAlreadyExists, fmt.Sprintf("%s %q already exists", q.resource, m.Name))
		}
		if !c.hasNamespace(q.namespace) {
			return status(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("namespaces %q not found", q.namespace))
		}
		return c.store(q, o, http.StatusCreated)
	}
	if code, answer := q.refused(o, before, found); code != 0 {
		return code, answer
	}
	m.UID, m.CreationTimestamp = before.meta().UID, before.meta().CreationTimestamp
	return c.store(q, o, http.StatusOK)
}

// take moves stringData where the server keeps it.
func (s *secret) take() {
	for key, text := range s.StringData {
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		s.Data[key] = []byte(text)
	}
	s.StringData = nil
	if s.Type == "" {
		s.Type = core.SecretTypeOpaque
	}
}

// misplaced says why a body does not belong to its URL.
func (q clusterRequest) misplaced(o clusterObject) string {
	m, n := o.meta(), o.named()
	switch {
	case n.Kind != "" && n.Kind != kinds[q.resource] || n.APIVersion != "" && n.APIVersion != apiVersions[q.resource]:
		return fmt.Sprintf("%s in version %q cannot be handled as a %s", n.Kind, n.APIVersion, kinds[q.resource])
	case m.Namespace != "" && m.Namespace != q.namespace:
		return fmt.Sprintf("the namespace of the provided object does not match the namespace sent on the request (%s != %s)", m.Namespace, q.namespace)
	case q.verb == "update" && m.Name != q.name:
		return fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.Name, q.name)
	case q.verb == "create" && m.ResourceVersion != "":
		return "resourceVersion should not be set on objects to be created"
	}
	return ""
}

// refused says why an object cannot take the place of the one before.
func (q clusterRequest) refused(o, before clusterObject, found bool) (int, any) {
	m := o.meta()
	if !found {
		return q.notFound()
	}
	if m.ResourceVersion == "" && q.resource == "leases" {
		return q.unprocessable(m.Name, "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
	}
	if m.ResourceVersion != "" && m.ResourceVersion != before.meta().ResourceVersion {
		return status(http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf(
			"Operation cannot be fulfilled on %s %q: the object has been modified; please apply your changes to the latest version and try again", q.resource, m.Name))
	}
	if m.UID != "" && m.UID != before.meta().UID {
		return status(http.StatusConflict, metav1.StatusReasonConflict, fmt.Sprintf("Precondition failed: UID in precondition: %s, UID in object meta: %s", m.UID, before.meta().UID))
	}
	s, ok := o.(*secret)
	if ok && s.Type != before.(*secret).Type {
		return q.unprocessable(m.Name, "type: Invalid value: field is immutable")
	}
	return 0, nil
}

// invalid returns the fault of an object.
func invalid(o clusterObject) string {
	m := o.meta()
	if m.Name == "" {
		return "metadata.name: Required value: name or generateName is required"
	}
	if bad := validation.IsDNS1123Subdomain(m.Name); len(bad) > 0 {
		return fmt.Sprintf("metadata.name: Invalid value: %q: %s", m.Name, strings.Join(bad, ", "))
	}
	for key, value := range m.Labels {
		if bad := slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)); len(bad) > 0 {
			return fmt.Sprintf("metadata.labels: Invalid value: %q: %s", value, strings.Join(bad, ", "))
		}
	}
	total := 0
	for key, value := range m.Annotations {
		if bad := validation.IsQualifiedName(strings.ToLower(key)); len(bad) > 0 {
			return fmt.Sprintf("metadata.annotations: Invalid value: %q: %s", key, strings.Join(bad, ", "))
		}
		total += len(key) + len(value)
	}
	if total > 256<<10 {
		return "metadata.annotations: Too long: may not be more than 262144 bytes"
	}
	return o.problem()
}

func (q clusterRequest) unprocessable(name, wrong string) (int, any) {
	return status(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, fmt.Sprintf("%s %q is invalid: %s", kinds[q.resource], name, wrong))
}

func (c *Cluster) hasNamespace(name string) bool {
	if c.Namespaces == nil {
		return name == "default"
	}
	return slices.Contains(c.Namespaces, name)
}

func (c *Cluster) store(q clusterRequest, o clusterObject, code int) (int, any) {
	m := o.meta()
	c.last++
	m.ResourceVersion = strconv.Itoa(c.last)
	if m.UID == "" || q.verb == "create" {
		m.UID, m.CreationTimestamp = types.UID(uuid.NewString()), metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	}
	*o.named() = metav1.TypeMeta{Kind: kinds[q.resource], APIVersion: apiVersions[q.resource]}
	c.objects[q.resource][m.Namespace+"/"+m.Name] = o
	return code, o
}

// Secrets and Leases list what there is, by name.
func (c *Cluster) Secrets() []string { return c.names("secrets") }

// Leases is as Secrets.
func (c *Cluster) Leases() []string { return c.names("leases") }

func (c *Cluster) names(resource string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sortedKeys(c.objects[resource])
}

// Secret returns a copy of a Secret, by namespace/name; nil where there is
// none.
func (c *Cluster) Secret(key string) *core.Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.objects["secrets"][key].(*secret); ok {
		return s.Secret.DeepCopy()
	}
	return nil
}

// Lease is as Secret.
func (c *Cluster) Lease(key string) *coordination.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.objects["leases"][key].(*lease); ok {
		return l.Lease.DeepCopy()
	}
	return nil
}

// ReplaceLease is as Replace.
func (c *Cluster) ReplaceLease(l *coordination.Lease) { c.replace("leases", &lease{*l.DeepCopy()}) }

// Replace puts a Secret where one of its name was, as another client does.
func (c *Cluster) Replace(s *core.Secret) { c.replace("secrets", &secret{*s.DeepCopy()}) }

func (c *Cluster) replace(resource string, o clusterObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prepare()
	c.last++
	o.meta().ResourceVersion = strconv.Itoa(c.last)
	c.objects[resource][o.meta().Namespace+"/"+o.meta().Name] = o
}

func sortedKeys(m map[string]clusterObject) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
