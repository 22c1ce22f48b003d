package storetest

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Cluster is as much of a Kubernetes API server as keeps Secrets and Leases.
// It is strict: it refuses what the real one refuses, in its words.
type Cluster struct {
	Token      string   // that requests must bear; "" for none
	Namespaces []string // that there are; nil for "default"
	// Deny says what the token's user may not do: "create secrets".
	Deny func(action, name string) bool

	mu      sync.Mutex
	last    int                                 // resource version
	objects map[string]map[string]clusterObject // by resource, then by namespace/name
}

// request is one that was understood.
type clusterRequest struct {
	verb, resource, namespace, name string
	body                            []byte
	r                               *http.Request
}

// largestRequest is etcd's and the server's limit for a body in bytes.
const largestRequest = 3 << 20

// ServeHTTP answers one request.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, largestRequest+1))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	code, answer := c.answer(clusterRequest{body: body, r: r})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // the client of a failed write is gone
}

// verbs are what a method does to a resource and to one object of it.
var verbs = map[string][2]string{
	http.MethodGet: {"list", "get"}, http.MethodPost: {"create", ""}, http.MethodPut: {"", "update"}, http.MethodDelete: {"deletecollection", "delete"},
}

func (c *Cluster) answer(q clusterRequest) (int, any) {
	if c.Token != "" && q.r.Header.Get("Authorization") != "Bearer "+c.Token {
		return status(http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
	}
	if len(q.body) > largestRequest {
		return status(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: limit is 3145728")
	}
	var rest string
	for prefix, resource := range map[string]string{"/api/v1/namespaces/": "secrets", "/apis/coordination.k8s.io/v1/namespaces/": "leases"} {
		if path, ok := strings.CutPrefix(q.r.URL.Path, prefix); ok {
			q.resource, rest = resource, path
		}
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[1] != q.resource {
		return status(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	}
	q.namespace = parts[0]
	one := 0
	if len(parts) == 3 {
		q.name, one = parts[2], 1
	}
	if q.verb = verbs[q.r.Method][one]; q.verb == "" || q.verb == "deletecollection" {
		return status(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
	}
	if c.Deny != nil && c.Deny(q.verb+" "+q.resource, q.name) {
		return status(http.StatusForbidden, metav1.StatusReasonForbidden,
			fmt.Sprintf("%s %q is forbidden: User \"user\" cannot %s resource %q in API group %q in the namespace %q", q.resource, q.name, q.verb, q.resource, group(q.resource), q.namespace))
	}
	return c.carryOut(q)
}

func group(resource string) string {
	if resource == "leases" {
		return "coordination.k8s.io"
	}
	return ""
}

func (c *Cluster) carryOut(q clusterRequest) (int, any) {
	c.prepare()
	key := q.namespace + "/" + q.name
	there, found := c.objects[q.resource][key]
	switch q.verb {
	case "create", "update":
		if t, _, _ := mime.ParseMediaType(q.r.Header.Get("Content-Type")); t != "application/json" {
			return status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format")
		}
		return c.write(q)
	case "list":
		return c.list(q)
	}
	if !found {
		return q.notFound()
	}
	if q.verb == "get" {
		return http.StatusOK, there
	}
	var options metav1.DeleteOptions
	if len(q.body) > 0 && json.Unmarshal(q.body, &options) != nil {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the object provided is unrecognized")
	}
	if p := options.Preconditions; p != nil && (p.ResourceVersion != nil && *p.ResourceVersion != there.meta().ResourceVersion || p.UID != nil && *p.UID != there.meta().UID) {
		return status(http.StatusConflict, metav1.StatusReasonConflict,
			fmt.Sprintf("Operation cannot be fulfilled on %s %q: the ResourceVersion in the precondition does not match the ResourceVersion in record. The object might have been modified", q.resource, q.name))
	}
	delete(c.objects[q.resource], key)
	c.last++
	return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}
}

func (c *Cluster) prepare() {
	if c.objects == nil {
		c.objects = map[string]map[string]clusterObject{"secrets": {}, "leases": {}}
	}
}

func (c *Cluster) list(q clusterRequest) (int, any) {
	selector, err := labels.Parse(q.r.URL.Query().Get("labelSelector"))
	if err != nil {
		return status(http.StatusBadRequest, metav1.StatusReasonBadRequest, "unable to parse requirement: "+err.Error())
	}
	limit, _ := strconv.Atoi(q.r.URL.Query().Get("limit"))
	items, next := []clusterObject{}, ""
	for _, key := range sortedKeys(c.objects[q.resource]) {
		o := c.objects[q.resource][key]
		if o.meta().Namespace != q.namespace || key <= q.r.URL.Query().Get("continue") || !selector.Matches(labels.Set(o.meta().Labels)) {
			continue
		}
		if limit > 0 && len(items) == limit {
			break
		}
		items, next = append(items, o), key
	}
	if limit == 0 || len(items) < limit {
		next = ""
	}
	if strings.HasPrefix(q.r.Header.Get("Accept"), "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1") {
		return http.StatusOK, metadataOf(items, c.last, next)
	}
	return http.StatusOK, map[string]any{
		"kind": kinds[q.resource] + "List", "apiVersion": apiVersions[q.resource], "items": items,
		"metadata": map[string]string{"resourceVersion": strconv.Itoa(c.last), "continue": next},
	}
}

// metadataOf is the list that one gets who asks for metadata only.
func metadataOf(items []clusterObject, version int, next string) any {
	list := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}}
	list.ResourceVersion, list.Continue = strconv.Itoa(version), next
	for _, o := range items {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, ObjectMeta: *o.meta(),
		})
	}
	return list
}

func (q clusterRequest) notFound() (int, any) {
	where := q.resource
	if g := group(q.resource); g != "" {
		where += "." + g
	}
	return status(http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", where, q.name))
}

// status is how the server says no.
func status(code int, reason metav1.StatusReason, message string) (int, any) {
	return code, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Message: message, Reason: reason, Code: int32(code),
	}
}
