package metal

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
)

// parallel lets no more operations through at a time than the provider block
// says, so that no more machines are worked on. A waiting operation
// holds no lock, and one that is let through waits for none that waits here, so
// that this cannot deadlock.
type parallel struct {
	tfprotov6.ProviderServer
	provider *metalProvider
}

// enter waits for a place.
func (p parallel) enter(ctx context.Context) (leave func(), err error) {
	s := p.provider.settings
	if s == nil || s.places == nil {
		return func() {}, nil
	}
	select {
	case s.places <- struct{}{}:
		return func() { <-s.places }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-providers.CallFrom(ctx).Stopping:
		return nil, errors.New("stopped")
	}
}

func (p parallel) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.ProviderServer.ReadResource(ctx, req)
}

func (p parallel) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.ProviderServer.PlanResourceChange(ctx, req)
}

func (p parallel) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.ProviderServer.ApplyResourceChange(ctx, req)
}

func (p parallel) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	leave, err := p.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.ProviderServer.ReadDataSource(ctx, req)
}
