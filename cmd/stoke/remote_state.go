package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/providers/builtin"
)

// remoteReader lets the data source terraform_remote_state read states in all
// backends of this binary.
type remoteReader struct {
	getenv func(string) string
}

// CheckBackend returns an error that lists the kinds of backends, if kind is
// not one of them.
func (r remoteReader) CheckBackend(kind string) error {
	if _, diags := knownKind(kind, nil); diags.HasErrors() {
		return errors.New(diags[0].Detail)
	}
	return nil
}

// CheckConfig converts the arguments.
func (r remoteReader) CheckConfig(kind string, config cty.Value) error {
	k := backendKind(kind)
	if k == nil {
		return r.CheckBackend(kind)
	}
	if _, err := k.Take(config); err != nil {
		return errors.New(asSentence(err.Error()))
	}
	return nil
}

// Outputs reads a state with what its journal tells, if a run is at work on
// it or was cut short. It takes no lock.
func (r remoteReader) Outputs(ctx context.Context, kind string, config cty.Value, workspace string) (outputs map[string]builtin.Output, found bool, err error) {
	k := backendKind(kind)
	if k == nil {
		return nil, false, r.CheckBackend(kind)
	}
	values, err := k.Take(config)
	if err != nil {
		return nil, false, err
	}
	c, problems := k.Resolve(values, r.getenv)
	if len(problems) > 0 {
		return nil, false, errors.New(strings.Join(problems, "; "))
	}
	if err := backend.CheckWorkspace(workspace); err != nil {
		return nil, false, fmt.Errorf("this cannot be a workspace's name: %w", err)
	}
	c.Caller = "stoke/" + version
	b, err := k.Open(ctx, c)
	if err != nil {
		return nil, false, err
	}
	defer b.Close() //nolint:errcheck // nothing was written
	store, err := b.Store(workspace)
	if err != nil {
		return nil, false, err
	}
	if s, ok := store.(io.Closer); ok {
		defer s.Close() //nolint:errcheck // nothing was written
	}
	f, err := state.Open(ctx, store)
	if err != nil || f.Missing() {
		return nil, false, err
	}
	outputs = map[string]builtin.Output{}
	for name, o := range f.State().Outputs() {
		outputs[name] = builtin.Output{Value: o.Value, Sensitive: o.Sensitive}
	}
	return outputs, true, nil
}
