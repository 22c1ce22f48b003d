package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// client-go's discovery links every API group of Kubernetes, and each start of
// stoke would register their types: a third of its time. This file replaces it.

// aggregated asks for all groups in one answer. API servers before 1.27 answer
// with the names of groups and versions instead.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// atOnce limits the concurrent requests for versions of groups to an API server
// that does not aggregate.
const atOnce = 16

// Kind is a kind of objects that the API server serves in one version.
type Kind struct {
	schema.GroupVersionKind
	Resource   string // the name in paths, such as "deployments"
	Namespaced bool
}

// kindCache holds the kinds of a cluster after the first request for them.
type kindCache struct {
	mu    sync.Mutex
	asked bool
	kinds []Kind
}

// Version returns the version of the API server.
func (c *Client) Version(ctx context.Context) (*version.Info, error) {
	text, _, err := get(ctx, c.rest, "/version", "application/json")
	if err != nil {
		return nil, err
	}
	info := new(version.Info)
	if err := json.Unmarshal(text, info); err != nil {
		return nil, fmt.Errorf("read the version of the API server: %w", err)
	}
	return info, nil
}

// Kinds returns all kinds of the API server at the time of the first request:
// groups in its order, the preferred version of each first. Kinds of an aggregated
// API are missing while its server does not answer.
func (c *Client) Kinds() ([]Kind, error) {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	if !c.known.asked {
		kinds, err := discover(context.Background(), c.rest) // for all callers: none may end it
		if err != nil {
			return nil, err
		}
		c.known.kinds, c.known.asked = kinds, true
	}
	return c.known.kinds, nil
}

// Rediscover forgets the kinds: the next call reads them from the API server.
func (c *Client) Rediscover() {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	c.known.asked, c.known.kinds = false, nil
}

// Serves returns a kind in a version, "" for the version that the API server
// prefers. For an unknown kind the error is a meta.NoKindMatchError.
func (c *Client) Serves(kind schema.GroupKind, version string) (Kind, error) {
	all, err := c.Kinds()
	if err != nil {
		return Kind{}, err
	}
	var found Kind
	for _, k := range all {
		named := k.Kind == kind.Kind || strings.ToLower(k.Kind) == kind.Kind
		if k.Group != kind.Group || !named || version != "" && k.Version != version {
			continue
		}
		if found.Resource != "" && found.Version != k.Version {
			break
		}
		found = k // of two resources of one kind the last one
	}
	if found.Resource == "" {
		missing := &meta.NoKindMatchError{GroupKind: kind}
		if version != "" {
			missing.SearchedVersions = []string{version}
		}
		return Kind{}, missing
	}
	return found, nil
}

// offer is one version of a group of an API server. Its kinds are complete where
// listed is set.
type offer struct {
	schema.GroupVersion
	listed bool
	kinds  []Kind
}

// discover asks for everything that an API server serves.
func discover(ctx context.Context, api rest.Interface) ([]Kind, error) {
	var offers []offer
	for _, at := range []string{"/api", "/apis"} {
		found, err := readOffers(ctx, api, at)
		if at == "/api" && apierrors.IsNotFound(err) {
			continue // an API server without the core group, behind an aggregating one
		}
		if err != nil {
			return nil, err
		}
		offers = append(offers, found...)
	}
	var all errgroup.Group
	all.SetLimit(atOnce)
	for i := range offers {
		if !offers[i].listed {
			all.Go(func() error {
				offers[i].kinds = listed(ctx, api, offers[i].GroupVersion)
				return nil
			})
		}
	}
	_ = all.Wait()
	var kinds []Kind
	for _, o := range offers {
		kinds = append(kinds, o.kinds...)
	}
	return kinds, nil
}

// get returns an answer and its content type.
func get(ctx context.Context, api rest.Interface, at, accept string) (text []byte, form string, err error) {
	answer := api.Get().AbsPath(at).SetHeader("Accept", accept).Do(ctx)
	if err := answer.Error(); err != nil { // with the API server's words, which Raw leaves out
		return nil, "", err
	}
	text, err = answer.ContentType(&form).Raw()
	return text, form, err
}

// readOffers reads the versions of groups below /api or /apis.
func readOffers(ctx context.Context, api rest.Interface, at string) ([]offer, error) {
	text, form, err := get(ctx, api, at, aggregated)
	if err != nil {
		return nil, err
	}
	read := namesOnly
	if _, parameters, err := mime.ParseMediaType(form); err == nil && parameters["as"] == "APIGroupDiscoveryList" && parameters["v"] == "v2" {
		read = withKinds
	}
	offers, err := read(text)
	if err != nil {
		return nil, fmt.Errorf("read %s of the API server: %w", at, err)
	}
	return offers, nil
}

// withKinds reads an aggregated answer.
func withKinds(text []byte) (offers []offer, err error) {
	var list apidiscovery.APIGroupDiscoveryList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			if v.Freshness == apidiscovery.DiscoveryFreshnessStale {
				continue // its server does not answer
			}
			o := offer{GroupVersion: schema.GroupVersion{Group: g.Name, Version: v.Version}, listed: true}
			for _, r := range v.Resources {
				if r.ResponseKind != nil && r.ResponseKind.Kind != "" { // else it only has subresources
					o.kinds = append(o.kinds, Kind{o.WithKind(r.ResponseKind.Kind), r.Resource, r.Scope == apidiscovery.ScopeNamespace})
				}
			}
			offers = append(offers, o)
		}
	}
	return offers, nil
}

// namesOnly reads an answer with the names of groups and versions, or below /api
// with the names of versions.
func namesOnly(text []byte) (offers []offer, err error) {
	var list struct {
		Groups   []metav1.APIGroup
		Versions []string
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for _, v := range list.Versions {
		offers = append(offers, offer{GroupVersion: schema.GroupVersion{Version: v}})
	}
	for _, g := range list.Groups {
		first := len(offers)
		for _, v := range g.Versions {
			offers = append(offers, offer{GroupVersion: schema.GroupVersion{Group: g.Name, Version: v.Version}})
			if last := len(offers) - 1; v.Version == g.PreferredVersion.Version {
				copy(offers[first+1:], offers[first:last])
				offers[first].GroupVersion = schema.GroupVersion{Group: g.Name, Version: v.Version}
			}
		}
	}
	return offers, nil
}

// listed returns the kinds in one version of a group, none where it cannot be read.
func listed(ctx context.Context, api rest.Interface, of schema.GroupVersion) (kinds []Kind) {
	at := "/apis/" + of.String()
	if of.Group == "" {
		at = "/api/" + of.Version
	}
	text, _, err := get(ctx, api, at, "application/json")
	var list metav1.APIResourceList
	if err != nil || json.Unmarshal(text, &list) != nil {
		return nil
	}
	for _, r := range list.APIResources {
		if !strings.Contains(r.Name, "/") { // else it is a subresource
			kinds = append(kinds, Kind{of.WithKind(r.Kind), r.Name, r.Namespaced})
		}
	}
	return kinds
}
