package kube

import (
	"fmt"
	"maps"
	"slices"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// workload is where a kind has its pods' template, and how many of them there are.
type workload struct {
	template []string // of fields; empty for a Pod, which is one itself
	count    func(spec map[string]any) int64
}

var workloads = map[string]workload{
	"Pod":                   {nil, func(map[string]any) int64 { return 1 }},
	"ReplicationController": {[]string{"spec", "template"}, replicas},
	"apps/Deployment":       {[]string{"spec", "template"}, replicas},
	"apps/ReplicaSet":       {[]string{"spec", "template"}, replicas},
	"apps/StatefulSet":      {[]string{"spec", "template"}, replicas},
	"apps/DaemonSet":        {[]string{"spec", "template"}, func(map[string]any) int64 { return 1 }},
	"batch/Job":             {[]string{"spec", "template"}, parallel},
	"batch/CronJob":         {[]string{"spec", "jobTemplate", "spec", "template"}, scheduled},
}

func replicas(spec map[string]any) int64 { return numberOr(spec, "replicas", 1) }

// parallel is how many pods a Job has at a time: none while it is suspended.
func parallel(spec map[string]any) int64 {
	if spec["suspend"] == true {
		return 0
	}
	n := numberOr(spec, "parallelism", 1)
	if completions := numberOr(spec, "completions", n); completions < n {
		return completions
	}
	return n
}

func scheduled(spec map[string]any) int64 {
	if spec["suspend"] == true {
		return 0
	}
	job, _, _ := unstructured.NestedMap(spec, "jobTemplate", "spec")
	return parallel(job)
}

func numberOr(spec map[string]any, field string, other int64) int64 {
	if n, ok := spec[field].(int64); ok {
		return n
	}
	return other
}

// demandOf is what the pods of an object ask for; nil where it has none now.
func demandOf(u *unstructured.Unstructured) *connect.Demand {
	gvk := u.GroupVersionKind()
	of := gvk.Kind
	if gvk.Group != "" {
		of = gvk.Group + "/" + gvk.Kind
	}
	d := &connect.Demand{Name: object.KeyOf(u).Title()}
	w, known := workloads[of]
	if !known {
		if !podded(u.Object["spec"]) || gvk.Kind == "PodTemplate" {
			return nil
		}
		d.Unclear = fmt.Sprintf("what pods a %s has, its controller says", gvk.Kind)
		return d
	}
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	if d.Count = w.count(spec); d.Count == 0 {
		return nil
	}
	template, _, err := unstructured.NestedMap(u.Object, w.template...)
	if len(w.template) == 0 {
		template = map[string]any{"spec": spec}
	}
	var pod core.Pod
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"spec": template["spec"]}, &pod)
	}
	if err != nil {
		d.Unclear = "the pods' template cannot be read"
		return d
	}
	d.Each = gvk.Kind == "DaemonSet"
	live.Ask(d, &pod)
	return d
}

// podded reports whether v contains a pod template.
func podded(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if list, ok := v["containers"].([]any); ok && len(list) > 0 {
			return true
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if podded(v[name]) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, podded)
	}
	return false
}
