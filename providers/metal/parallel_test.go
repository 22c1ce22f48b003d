package metal

import (
	"context"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
)

// crowd is a provider that holds whoever comes in until it is told.
type crowd struct {
	tfprotov6.ProviderServer
	entered, out chan struct{}
}

func (c crowd) ReadResource(context.Context, *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	c.entered <- struct{}{}
	<-c.out
	return nil, nil
}

func TestParallelism(t *testing.T) {
	const most, all = 3, 10
	c := crowd{entered: make(chan struct{}, all), out: make(chan struct{})}
	p := parallel{c, &metalProvider{settings: &settings{places: make(chan struct{}, most)}}}
	var calls sync.WaitGroup
	for range all {
		calls.Go(func() {
			if _, err := p.ReadResource(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	for range most {
		<-c.entered
	}
	if n := len(c.entered); n > 0 {
		t.Errorf("%d more than %d came in", n, most)
	}
	stop := make(chan struct{})
	close(stop)
	if _, err := p.ReadResource(providers.WithCall(t.Context(), &providers.Call{Stopping: stop}), nil); err == nil {
		t.Error("who waits is not stopped")
	}
	for range all { // one goes, one comes
		c.out <- struct{}{}
		if n := len(c.entered); n > all-most {
			t.Errorf("%d came in", n)
		}
	}
	calls.Wait()
	p.provider.settings.places = nil
	close(c.out)
	if _, err := p.ReadResource(t.Context(), nil); err != nil {
		t.Error(err)
	}
}
