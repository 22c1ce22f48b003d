package main

import (
	"context"
	"os"
	"sort"
	"sync"

	goversion "github.com/hashicorp/go-version"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/modules/lang"
	"github.com/stokehq/stoke/plan/view"
	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/builtin"
	"github.com/stokehq/stoke/providers/gke"
	"github.com/stokehq/stoke/providers/kube"
	"github.com/stokehq/stoke/providers/metal"
	"github.com/stokehq/stoke/providers/train"
)

// catalogue is every provider that is linked into this binary.
func catalogue() providers.Catalogue {
	own := builtin.Entry(remoteReader{os.Getenv})
	own.Functions = lang.TfvarsFunctions()
	return providers.Catalogue{
		builtin.Source: own,
		gke.Source:     gke.Entry(version),
		kube.Source:    kube.Entry(version),
		metal.Source:   metal.Entry(version),
		train.Source:   train.Entry(version),
	}
}

func sources(c providers.Catalogue) []string {
	names := make([]string, 0, len(c))
	for name := range c {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// schemas looks types up in the linked-in providers, for views of a state:
// each provider is asked once, and only when an object of it turns up.
func schemas(ctx context.Context, c providers.Catalogue) view.Schemas {
	var mu sync.Mutex
	known := make(map[string]*providers.Schema)
	return func(provider string, mode address.Mode, typeName string) *providers.ResourceSchema {
		source := view.ProviderSource(provider)
		mu.Lock()
		defer mu.Unlock()
		schema, asked := known[source]
		if !asked {
			schema = schemaOf(ctx, c, source)
			known[source] = schema
		}
		switch {
		case schema == nil:
			return nil
		case mode == address.Data:
			return schema.Data[typeName]
		}
		return schema.Resources[typeName]
	}
}

// schemaOf is nil for a provider that is not at hand: its objects are then
// shown as they are stored.
func schemaOf(ctx context.Context, c providers.Catalogue, source string) *providers.Schema {
	entry, ok := c[source]
	if !ok {
		return nil
	}
	p, err := entry.New()
	if err != nil {
		return nil
	}
	defer p.Close() //nolint:errcheck // it was only asked for its schema
	schema, diags := p.Schema(ctx)
	if diags.HasErrors() {
		return nil
	}
	return schema
}

// ownVersion returns a provider's version where it has a number of its own, ""
// where it is as old as stoke itself.
func ownVersion(e providers.Entry) string {
	if _, err := goversion.NewVersion(e.Version); err != nil {
		return ""
	}
	return e.Version
}
