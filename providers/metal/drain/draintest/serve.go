package draintest

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// request is one as authorizers see it.
type request struct {
	*http.Request
	node                 string // who asks
	lister               bool   // who may list nodes, and nothing else
	admin                bool   // who may do everything
	verb                 string
	group, resource, sub string
	namespace, name      string
}

func (c *Cluster) serve(w http.ResponseWriter, r *http.Request) {
	req, err := c.authenticate(r)
	if err == nil {
		c.mu.Lock()
		c.log = append(c.log, req.String())
		c.mu.Unlock()
		err = c.authorize(req)
	}
	var answer any
	refused, after := err == nil && c.Fault != nil, false
	if refused {
		refused, after = c.Fault(req.String())
	}
	if err == nil && (after || !refused) {
		answer, err = c.answer(req)
	}
	if refused {
		err = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "refused by the test"}}
	}
	code := http.StatusOK
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		s := status.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		answer, code = s, int(s.Code)
		if s.Details != nil && s.Details.RetryAfterSeconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(s.Details.RetryAfterSeconds)))
		}
	} else if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(answer)
}

func (r *request) String() string {
	s := r.Method + " " + r.resource
	if r.name != "" {
		s += "/" + r.name
	}
	if r.sub != "" {
		s += "/" + r.sub
	}
	if r.URL.Query().Get("dryRun") != "" {
		s += " dry"
	}
	return s
}

func (c *Cluster) authenticate(r *http.Request) (*request, error) {
	pool := x509.NewCertPool()
	pool.AddCert(c.ca)
	req := &request{Request: r, verb: map[string]string{"GET": "get", "POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}[r.Method]}
	switch {
	case r.Header.Get("Authorization") == "Bearer "+listerToken:
		req.lister = true
	case r.TLS == nil || len(r.TLS.PeerCertificates) == 0:
		return nil, apierrors.NewUnauthorized("Unauthorized")
	default:
		leaf := r.TLS.PeerCertificates[0]
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			return nil, apierrors.NewUnauthorized("Unauthorized")
		}
		if node, ok := strings.CutPrefix(leaf.Subject.CommonName, "system:node:"); ok && slices.Contains(leaf.Subject.Organization, "system:nodes") {
			req.node = node
		}
		req.lister = leaf.Subject.CommonName == lister
		groups := leaf.Subject.Organization
		req.admin = slices.Contains(groups, masters) || slices.Contains(groups, operators) && c.Object("clusterrolebindings", "", operators) != nil
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "version", parts[0] == "api" && len(parts) <= 2, parts[0] == "apis" && len(parts) <= 3:
		req.resource = discovery
		return req, nil
	case len(parts) > 2 && parts[0] == "api" && parts[1] == "v1":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		req.group = parts[1]
		parts = parts[3:]
	default:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path)
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		req.namespace = parts[1]
		parts = parts[2:]
	}
	for i, into := range []*string{&req.resource, &req.name, &req.sub} {
		if i < len(parts) {
			*into = parts[i]
		}
	}
	if req.verb == "get" && req.name == "" {
		req.verb = "list"
	}
	return req, nil
}

func (r *request) forbidden(why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: r.group, Resource: r.resource}, r.name,
		fmt.Errorf("user %q cannot %s resource %q in API group %q: %s", "system:node:"+r.node, r.verb, r.resource, r.group, why))
}

// authorize is the Node authorizer, and RBAC which gives nodes nothing more.
func (c *Cluster) authorize(r *request) error {
	own := r.URL.Query().Get("fieldSelector") == "spec.nodeName="+r.node
	switch {
	case r.admin || r.resource == discovery:
		return nil
	case r.lister && r.resource == "nodes" && r.sub == "" && r.verb == "list":
		return nil
	case r.node == "":
		return r.forbidden("no RBAC policy matched")
	case r.resource == "nodes" && r.sub == "" && r.verb == "list":
		if c.Lists {
			return nil
		}
		return r.forbidden(fmt.Sprintf("node '%s' cannot read all nodes, only its own Node object", r.node))
	case r.resource == "nodes" && r.sub == "" && r.verb == "get":
		if r.name != r.node && !c.Lists {
			return r.forbidden(fmt.Sprintf("node '%s' cannot read '%s', only its own Node object", r.node, r.name))
		}
		return nil
	case r.resource == "nodes" && r.sub == "" && (r.verb == "patch" || r.verb == "update"):
		return nil // NodeRestriction says which
	case r.resource == "pods" && r.verb == "list":
		if !own && !c.Lists {
			return r.forbidden("can only list/watch pods with spec.nodeName field selector")
		}
		return nil
	case r.resource == "pods" && r.sub == "" && r.verb == "get":
		c.mu.Lock()
		defer c.mu.Unlock()
		if p := c.pods[r.namespace+"/"+r.name]; p == nil || p.Spec.NodeName != r.node {
			return r.forbidden(fmt.Sprintf("no relationship found between node '%s' and this object", r.node))
		}
		return nil
	case r.resource == "pods" && r.sub == "eviction" && r.verb == "create":
		return nil // NodeRestriction says which
	case r.group == "coordination.k8s.io" && r.resource == "leases":
		if r.namespace != "kube-node-lease" || r.name != r.node {
			return r.forbidden("can only access node lease with the same name as the requesting node")
		}
		return nil
	}
	return r.forbidden("no RBAC policy matched")
}

func (c *Cluster) answer(r *request) (any, error) {
	if c.Forbid != nil && r.Method != http.MethodGet {
		if why := c.Forbid(r.String()); why != "" {
			return nil, apierrors.NewForbidden(schema.GroupResource{Group: r.group, Resource: r.resource}, r.name, errors.New(why))
		}
	}
	if r.verb == "patch" && c.BeforePatch != nil && r.URL.Query().Get("dryRun") == "" {
		c.BeforePatch(r.name)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	object, err := c.object(r)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(object) // as it is now
	return json.RawMessage(text), err
}

func (c *Cluster) object(r *request) (any, error) {
	if r.admin || r.resource == discovery {
		if object, err, known := c.administered(r); known {
			return object, err
		}
	}
	switch r.verb + " " + r.resource {
	case "list nodes":
		return c.listNodes(), nil
	case "get nodes", "patch nodes":
		n := c.nodes[r.name]
		if n == nil {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, r.name)
		}
		if r.verb == "patch" {
			return c.patch(r, n)
		}
		return n, nil
	case "list pods":
		return c.listPods(r)
	case "get pods":
		return c.pods[r.namespace+"/"+r.name], nil
	case "create pods":
		return c.evict(r)
	case "get leases":
		return c.lease(r.name), nil
	}
	return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Group: r.group, Resource: r.resource}, r.verb)
}

func (c *Cluster) listNodes() any {
	list := core.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
	for _, n := range c.nodes {
		list.Items = append(list.Items, *n)
	}
	sort.Slice(list.Items, func(i, j int) bool { return list.Items[i].Name < list.Items[j].Name })
	return list
}

// listPods lists two at a time, so that every caller meets a second page.
func (c *Cluster) listPods(r *request) (any, error) {
	const page = 2
	var all []core.Pod
	for name, p := range c.pods {
		if p.Spec.NodeName != r.node {
			continue
		}
		if p.DeletionTimestamp != nil && r.URL.Query().Get("continue") == "" {
			if c.linger[name]++; c.linger[name] > c.Linger && !c.dead[r.node] {
				delete(c.pods, name)
				continue
			}
		}
		all = append(all, *p)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Namespace+all[i].Name < all[j].Namespace+all[j].Name })
	from := 0
	if token := r.URL.Query().Get("continue"); token != "" {
		var err error
		if from, err = strconv.Atoi(token); err != nil {
			return nil, apierrors.NewBadRequest("continue key is not valid")
		}
	}
	list := core.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: all[min(from, len(all)):min(from+page, len(all))]}
	if from+page < len(all) {
		list.Continue = strconv.Itoa(from + page)
	}
	return list, nil
}

func (c *Cluster) lease(node string) any {
	if !c.dead[node] {
		c.renewed[node] = c.renewed[node].Add(10 * time.Second)
	}
	at := metav1.NewMicroTime(c.renewed[node])
	return coordination.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: node}, Spec: coordination.LeaseSpec{RenewTime: &at}}
}

// dry reads the parameter dryRun as the API server does.
func dry(r *request) (bool, error) {
	values := r.URL.Query()["dryRun"]
	if len(values) > 1 || len(values) == 1 && values[0] != metav1.DryRunAll {
		return false, apierrors.NewBadRequest(fmt.Sprintf("invalid dryRun %q", values))
	}
	return len(values) == 1, nil
}

// patch merges and lets NodeRestriction look at the result.
func (c *Cluster) patch(r *request, old *core.Node) (any, error) {
	try, err := dry(r)
	if err != nil {
		return nil, err
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/merge-patch+json" {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType, Message: kind}}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var change, before any
	if err := json.Unmarshal(body, &change); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	text, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &before); err != nil {
		return nil, err
	}
	if text, err = json.Marshal(merge(before, change)); err != nil {
		return nil, err
	}
	var n core.Node
	if err := json.Unmarshal(text, &n); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if n.ResourceVersion != old.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, r.name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	refuse := func(why string, args ...any) (any, error) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, r.name, fmt.Errorf(why, args...))
	}
	switch {
	case r.admin && n.UID == old.UID && n.Name == old.Name:
	case r.name != r.node:
		return refuse("node %q is not allowed to modify node %q", r.node, r.name)
	case !equality.Semantic.DeepEqual(n.Spec.Taints, old.Spec.Taints):
		return refuse("node %q is not allowed to modify taints", r.node)
	case !equality.Semantic.DeepEqual(n.OwnerReferences, old.OwnerReferences):
		return refuse("node %q is not allowed to modify ownerReferences", r.node)
	case !equality.Semantic.DeepEqual(n.Labels, old.Labels):
		return refuse("is not allowed to modify labels")
	case n.UID != old.UID || n.Name != old.Name:
		return nil, apierrors.NewBadRequest("the name and the UID cannot be changed")
	}
	n.Status = old.Status // only the subresource changes it
	if !try {
		c.touch(&n.ObjectMeta)
		c.nodes[r.name] = &n
	}
	return &n, nil
}

// merge is RFC 7386.
func merge(to, patch any) any {
	change, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := to.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range change {
		if value == nil {
			delete(object, key)
		} else {
			object[key] = merge(object[key], value)
		}
	}
	return object
}
