package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/view"
	"github.com/stokehq/stoke/providers"
	connections "github.com/stokehq/stoke/providers/connect" // graph.go has a connect
	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// cluster is the cluster that an object of the state is or belongs to.
type cluster struct {
	address address.Instance
	connections.Connection
	ssh connections.SSHSettings
}

// reached are the attributes through which an object leads to a cluster: access
// of a cluster, cluster of an object in one.
var reached = []string{"access", "cluster"}

// cluster finds the cluster of an object, or complains. What the provider's block
// in this folder says of the way there is taken where it can be read.
func (s *session) cluster(ctx context.Context, path, text string) (*cluster, error) {
	a, err := address.ParseInstance(text)
	if err != nil {
		s.complainOnStderr(problem("Invalid address", "%q is not the address of an object: %s.", text, err))
		return nil, failed
	}
	file, err := s.currentState(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.close()
	o := file.State().Current(a)
	if o == nil {
		s.complainOnStderr(problem("No such object", "The state has no object at %s. \"stoke state list\" lists what it has.", a))
		return nil, failed
	}
	v, _ := view.ObjectValue(a, o, schemas(ctx, s.built))
	c := &cluster{address: a}
	given, inCluster := connectionOf(v)
	if !inCluster {
		s.complainOnStderr(problem("No cluster", "%s is not a cluster and does not belong to one. Name a cluster, or a resource of the provider kube.", a))
		return nil, failed
	}
	if given != nil {
		c.Connection = *given
	}
	if given == nil || given.Credential.SSH != nil {
		if err := s.configured(ctx, file, o, c, given == nil); err != nil {
			return nil, err
		}
	}
	if id := textOf(v, "cluster_id"); c.ID == "" {
		c.ID = id
	}
	return c, nil
}

// connectionOf is the connection that an object has; nil is the one of its
// provider. there is false for an object without any.
func connectionOf(v cty.Value) (c *connections.Connection, there bool) {
	v, _ = v.UnmarkDeep()
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() {
		return nil, false
	}
	for _, name := range reached {
		if !v.Type().HasAttribute(name) || !v.Type().AttributeType(name).Equals(connections.Type) {
			continue
		}
		if found, err := connections.FromValue(v.GetAttr(name)); err == nil {
			return &found, true
		}
		there = there || textOf(v, "cluster_id") != ""
	}
	return nil, there
}

// textOf is a string attribute; "" where there is none.
func textOf(v cty.Value, name string) string {
	v, _ = v.UnmarkDeep()
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return ""
	}
	if a := v.GetAttr(name); a.Type() == cty.String && !a.IsNull() && a.IsKnown() {
		return a.AsString()
	}
	return ""
}

// configured asks the provider of an object, configured as this folder says, for
// the way to machines, and for the connection where the object names none.
func (s *session) configured(ctx context.Context, file *stateFile, o *state.Object, c *cluster, needed bool) error {
	explorer, asked, diags := s.provider(ctx, file, o, c.address.String())
	if explorer != nil {
		defer explorer.Close()
	}
	switch {
	case needed && (asked == nil || asked.Cluster() == nil):
		s.complainOnStderr(diags...)
		s.complainOnStderr(problem("No cluster", "%s does not name a cluster, and its provider block, which should, cannot be "+
			"read in this folder or does not name one either. Run this in the folder of its configuration.", c.address))
		return failed
	case needed:
		c.Connection = *asked.Cluster()
	}
	if asked != nil {
		c.ssh = asked.SSH()
		return nil
	}
	for _, d := range diags { // it goes on without
		d.Severity = hcl.DiagWarning
	}
	s.complainOnStderr(diags...)
	settings, wrong := connections.DefaultSSH(ctx)
	if wrong.HasError() {
		s.complainOnStderr(problem(wrong[0].Summary(), "%s", wrong[0].Detail()))
		return failed
	}
	c.ssh = settings
	return nil
}

// provider configures the provider of an object as this folder says; nil where
// it says nothing, or nothing that is known.
func (s *session) provider(ctx context.Context, file *stateFile, o *state.Object, about string) (*plan.Explorer, connections.Configured, hcl.Diagnostics) {
	root, diags := s.read()
	if noConfiguration(diags) || diags.HasErrors() {
		return nil, nil, slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool { return d.Summary == modules.NoConfiguration })
	}
	values, missing, diags := modules.Values(root, modules.Inputs{Environ: s.environ, Source: modules.OnDisk(), Dir: "."}, s.files)
	if diags.HasErrors() {
		return nil, nil, diags
	}
	r := plan.Request{
		Root: root, Variables: make(map[string]cty.Value, len(values)), Files: s.files, Catalogue: s.built, Parallelism: 1,
		State: file.State(), Workspace: file.workspace(), Dir: ".", Stopping: s.signals.stopping,
	}
	for name, v := range values {
		r.Variables[name] = v.Value
	}
	for _, v := range missing {
		r.Variables[v.Name] = cty.UnknownVal(v.Type)
	}
	explorer, diags := plan.Explore(ctx, r, false)
	if diags.HasErrors() {
		return nil, nil, diags
	}
	p, diags := explorer.Provider(o.Provider, about)
	if p == nil || diags.HasErrors() {
		return explorer, nil, diags
	}
	asked, _ := providers.ServerOf(p.Linked()).(connections.Configured)
	return explorer, asked, diags
}

// complainOnStderr is complain for commands whose output others read.
func (s *session) complainOnStderr(diags ...*hcl.Diagnostic) {
	if len(diags) > 0 {
		s.stderr().Diagnostics(diags, s.source(), false)
	}
}

// unreached puts an error of a cluster in words.
func (s *session) unreached(err error) error {
	var code exitCode
	if err == nil || errors.As(err, &code) {
		return err
	}
	summary, detail := kubernetes.Describe(err)
	s.complainOnStderr(problem(summary, "%s", detail))
	return failed
}

// clusters lists the addresses that lead to a cluster, as the one argument of a
// command.
func (c completer) clusters(given []string) []string {
	if len(given) > 0 {
		return nil
	}
	ctx := context.Background()
	file, err := c.s.currentState(ctx, "")
	if err != nil {
		return nil
	}
	defer file.close()
	find := schemas(ctx, c.s.built)
	var names []string
	for _, a := range file.State().Instances() {
		if o := file.State().Current(a); o != nil {
			v, _ := view.ObjectValue(a, o, find)
			if _, there := connectionOf(v); there {
				names = append(names, a.String())
			}
		}
	}
	return names
}

// configuredProvider is the provider of a stored object as the configuration in
// the working folder has it: with it goes whatever only a provider block knows
// of the way to an object. address is the provider's, as the state names it, and
// about the object's. Variables without a value are unknown. The function that
// is returned ends the provider; what is wrong is said.
func (s *session) configuredProvider(
	ctx context.Context, file *stateFile, address, about string, f *planFlags,
) (*redact.Provider, func(), error) {
	o := newOperation(s, f)
	config, err := s.configureLoosely(f)
	if err != nil {
		return nil, nil, err
	}
	o.config, o.state = config, file
	r := o.request()
	r.State = file.State()
	explorer, diags := plan.Explore(ctx, r, false)
	s.complain(diags...)
	if diags.HasErrors() {
		return nil, nil, failed
	}
	p, diags := explorer.Provider(address, about)
	s.complain(diags...)
	switch {
	case diags.HasErrors():
	case p == nil:
		s.complain(problem("No such provider", "%s", fmt.Sprintf("%s, which %s needs, cannot be configured.", address, about)))
	default:
		return p, explorer.Close, nil
	}
	explorer.Close()
	return nil, nil, failed
}
