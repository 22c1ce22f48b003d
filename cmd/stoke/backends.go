package main

import (
	"sort"

	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/blob"
	"github.com/stokehq/stoke/plan/state/store/http"
	"github.com/stokehq/stoke/plan/state/store/kubernetes"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// backends is every kind of backend that is linked into this binary.
func backends() []*backend.Kind {
	return []*backend.Kind{local.Kind(), http.Kind(), kubernetes.Kind(), blob.GCS(), blob.S3()}
}

// backendKind finds a kind by its name; nil where there is none.
func backendKind(name string) *backend.Kind {
	for _, k := range backends() {
		if k.Name == name {
			return k
		}
	}
	return nil
}

func backendNames() []string {
	var names []string
	for _, k := range backends() {
		names = append(names, k.Name)
	}
	sort.Strings(names)
	return names
}
