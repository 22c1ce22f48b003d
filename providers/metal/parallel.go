package metal

import (
	"context"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

// parallel lets no more operations through at a time than the provider block
// says, so that no more machines are worked on. A waiting operation
// holds no lock, and one that is let through waits for none that waits here, so
// that this cannot deadlock.
type parallel struct {
	tfprotov6.ProviderServer
	provider *metalProvider
}

func inSlot[Q, R any](ctx context.Context, p parallel, req Q, do func(context.Context, Q) (R, error)) (none R, err error) {
	if s := p.provider.settings; s != nil && s.places != nil {
		select {
		case s.places <- struct{}{}:
			defer func() { <-s.places }()
		case <-ctx.Done():
			return none, context.Cause(ctx)
		case <-providers.CallFrom(ctx).Stopping:
			return none, host.ErrStopped
		}
	}
	return do(ctx, req)
}

func (p parallel) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return inSlot(ctx, p, req, p.ProviderServer.ReadResource)
}

func (p parallel) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	return inSlot(ctx, p, req, p.ProviderServer.PlanResourceChange)
}

func (p parallel) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return inSlot(ctx, p, req, p.ProviderServer.ApplyResourceChange)
}

func (p parallel) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return inSlot(ctx, p, req, p.ProviderServer.ReadDataSource)
}
