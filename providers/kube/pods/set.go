package pods

import (
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// Object names an object of a cluster that has pods.
type Object struct {
	schema.GroupKind
	Namespace, Name string
}

// String is what sentences call the object: "Deployment default/web".
func (o Object) String() string { return o.Kind + " " + o.Namespace + "/" + o.Name }

// Set is the pods of some objects.
type Set struct {
	Client *kubernetes.Client
	// Objects are the objects whose pods belong to the set. Kinds without pods are
	// left out.
	Objects []Object
	// Role is what a pod is called; nil is its name. Pods that take each other's
	// place may have one role.
	Role func(*core.Pod) string
}

var (
	_ providers.Run          = &Set{}
	_ providers.RunNames     = &Set{}
	_ providers.RunExecutor  = &Set{}
	_ providers.RunForwarder = &Set{}
)

// New is the pods of objects in a cluster.
func New(c *kubernetes.Client, objects []Object) *Set { return &Set{Client: c, Objects: objects} }

const (
	apps  = "apps"
	batch = "batch"

	deployment  = "Deployment"
	replicaSet  = "ReplicaSet"
	statefulSet = "StatefulSet"
	daemonSet   = "DaemonSet"
	job         = "Job"
	cronJob     = "CronJob"
	barePod     = "Pod"
)

// HasPods reports whether objects of a kind have pods.
func HasPods(k schema.GroupKind) bool {
	switch k.Group {
	case apps:
		return k.Kind == deployment || k.Kind == replicaSet || k.Kind == statefulSet || k.Kind == daemonSet
	case batch:
		return k.Kind == job || k.Kind == cronJob
	case "":
		return k.Kind == barePod
	}
	return false
}

// resource is what a kind with pods is called in URLs. All of them have had the
// version v1 for longer than any cluster lives.
func resource(k schema.GroupKind) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: "v1", Resource: strings.ToLower(k.Kind) + "s"}
}

// role is what a pod is called.
func (s *Set) role(p *core.Pod) string {
	if s.Role != nil {
		return s.Role(p)
	}
	return p.Name
}
