package kubernetes

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Source returns the requests that list and watch the objects of r with a label, or
// the object with a name; "" selects all. After each request, answered gets its error
// or nil, in any goroutine.
func Source(r dynamic.ResourceInterface, label, name string, answered func(error)) cache.ListerWatcher {
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector = label
		if name != "" {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", name).String()
		}
		return o
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := r.List(ctx, selected(o))
			answered(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := r.Watch(ctx, selected(o))
			answered(err)
			return w, err
		},
	}
}
