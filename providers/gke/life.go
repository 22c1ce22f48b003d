package gke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// kind is what tells one kind of resource from another.
type kind struct {
	name   string // behind gke_
	what   string // in messages: Cluster, Node pool
	limit  time.Duration
	schema func(ctx context.Context) schema.Schema
	// unfinished are the values of status that an update continues from.
	unfinished []string
	// failed are the values of status of failed creations: these objects are
	// recreated.
	failed []string
	// finishes: creation has steps after the object exists; if interrupted, an
	// update completes them.
	finishes bool
}

// model is the value of a resource.
type model[M any] interface {
	*M
	kind() kind
	head() head
	// create makes the object and waits for it. An object with the mark is adopted
	// after a call without a known result. started is called as soon as there is
	// an object that may be stored.
	create(ctx context.Context, j job, mark string, started func()) error
	// read sets the model to the observed object, and returns its mark. found is
	// false where there is nothing. Declared forms with the same meaning stay.
	read(ctx context.Context, j job) (found bool, mark string, err error)
	// update changes the object from prior to the model.
	update(ctx context.Context, j job, prior *M) error
	remove(ctx context.Context, j job) error
	// parseImportID are the attributes that say which object is imported.
	parseImportID(j job, id string) (map[string]string, error)
	// check looks at a plan. prior is nil for a create.
	check(ctx context.Context, j job, prior *M)
}

// head is what every model has.
type head struct {
	id, project, status *types.String
	timeouts            timeouts.Value
	// labels are the declared labels, and allLabels these with the provider's labels;
	// nil for what has none.
	labels, allLabels *types.Map
}

// job is what a call works with.
type job struct {
	*settings
	cloud *cloud.Cloud // of the object's project
	diags *diag.Diagnostics
	begun unfinishedReason // what an earlier apply has left to be finished
	// config has the arguments of the configuration, by name: in a plan, omitted
	// arguments and unknown ones look the same.
	config map[string]tftypes.Value
}

// omitted reports whether the configuration leaves an argument out, so that a plan
// may choose its value. An unknown argument is not omitted.
func (j job) omitted(name string) bool {
	v, ok := j.config[name]
	return j.config == nil || ok && v.IsNull()
}

// open reports whether a part of one of these arguments is not known yet.
func (j job) open(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		v, ok := j.config[name]
		return ok && !v.IsFullyKnown()
	})
}

// settleProject fills in the project of what names none.
func settleProject(j job, project *types.String) {
	if !isGiven(*project) && j.omitted("project") {
		*project = types.StringValue(j.cloud.Project)
	}
}

// life is what resources have in common, from the schema to the end.
type life[M any, P model[M]] struct{ settings *settings }

var errUnconfigured = errors.New("the block provider \"gke\" depends on values that are not known yet")

func (l *life[M, P]) kind() kind { return P(new(M)).kind() }

func (l *life[M, P]) job(of P, diags *diag.Diagnostics) (job, error) {
	if l.settings == nil {
		return job{}, errUnconfigured
	}
	return job{settings: l.settings, cloud: l.settings.cloud.ForProject(of.head().project.ValueString()), diags: diags}, nil
}

// Metadata names the type.
func (l *life[M, P]) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + l.kind().name
}

// Schema returns the kind's schema, with the common attributes.
func (l *life[M, P]) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	k := l.kind()
	s := k.schema(ctx)
	s.Attributes["id"] = computed("Its name in the API.")
	s.Attributes["project"] = serversFixed("Project that it is in. Default: that of the provider.")
	s.Attributes["status"] = schema.StringAttribute{Computed: true, Description: "Its status in the API.", PlanModifiers: []planmodifier.String{settles{k}}}
	if P(new(M)).head().allLabels != nil {
		s.Attributes["effective_labels"] = schema.MapAttribute{Computed: true, ElementType: types.StringType, Description: "" +
			"Labels in Google Cloud: the declared labels and default_labels of the provider, without labels that Google " +
			"sets."}
	}
	if s.Blocks == nil {
		s.Blocks = map[string]schema.Block{}
	}
	s.Blocks["timeouts"] = timeouts.Block(ctx, timeouts.Opts{Create: true, Update: true, Delete: true})
	resp.Schema = s
}

// Configure takes the settings; there are none while validating.
func (l *life[M, P]) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if s, ok := req.ProviderData.(*settings); ok {
		l.settings = s
	}
}

// ValidateConfig calls the kind's check of the configuration, which in a plan is
// mixed with observed values.
func (l *life[M, P]) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	if of, ok := any(P(new(M))).(interface {
		validate(context.Context, tfsdk.Config, *diag.Diagnostics)
	}); ok {
		of.validate(ctx, req.Config, &resp.Diagnostics)
	}
}

// ModifyPlan lets the kind look at what is planned.
func (l *life[M, P]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	var prior *M
	if !req.State.Raw.IsNull() {
		prior = new(M)
		resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
	}
	if req.Plan.Raw.IsNull() && prior != nil && !resp.Diagnostics.HasError() {
		if of, ok := any(prior).(interface{ noteDestroy(*diag.Diagnostics) }); ok && readBegun(ctx, req.Private) != begunCreate {
			of.noteDestroy(&resp.Diagnostics)
		}
		if of, ok := any(prior).(interface{ leaves(context.Context) }); ok {
			of.leaves(ctx)
		}
	}
	if req.Plan.Raw.IsNull() || resp.Diagnostics.HasError() {
		return
	}
	plan := P(new(M))
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	j, err := l.job(plan, &resp.Diagnostics)
	if err != nil || resp.Diagnostics.HasError() {
		return
	}
	if err := req.Config.Raw.As(&j.config); err != nil {
		resp.Diagnostics.AddError("Configuration cannot be read", sentence(err))
		return
	}
	if prior == nil {
		l.replaces(ctx, &resp.Diagnostics)
		j.checkServices(ctx, l.kind().name)
	}
	plan.check(ctx, j, prior)
	plan.head().planLabels(j.cloud)
	if prior != nil && l.kind().finishes && readBegun(ctx, req.Private) == begunCreate {
		*plan.head().status = types.StringUnknown()
	}
	if !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

// replaces rejects the replacement of a protected object, before any of its
// dependents is destroyed.
func (l *life[M, P]) replaces(ctx context.Context, diags *diag.Diagnostics) {
	was := providers.CallFrom(ctx).Replaces
	if was == cty.NilVal || was.IsNull() || !was.Type().HasAttribute("deletion_protection") {
		return
	}
	if on, _ := flagIn(was, "deletion_protection"); on && !slices.Contains(l.kind().failed, textIn(was, "status")) {
		keeps(l.kind().what, diags)
	}
}

// keeps rejects the destruction of a protected object.
func keeps(what string, diags *diag.Diagnostics) {
	diags.AddAttributeError(path.Root("deletion_protection"), what+" is protected", "deletion_protection is true: set it to false, apply, and destroy or replace it then.")
}

// Create makes the object and stores as much of it as there is.
func (l *life[M, P]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan := P(new(M))
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	j, err := l.job(plan, &resp.Diagnostics)
	if err != nil {
		addError(&resp.Diagnostics, path.Empty(), l.kind().what+" is not made", err)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.head().timeouts.Create(ctx, l.kind().limit)
	resp.Diagnostics.Append(diags...)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	there := false
	if err = j.enableServices(limited, l.kind().name); err != nil {
		addError(&resp.Diagnostics, path.Empty(), l.kind().what+" is not made", err)
		return
	}
	mark := cloud.MarkOf(providers.CallFrom(ctx).Operation)
	err = plan.create(l.holding(limited, plan, j), j, mark, func() { there = true })
	unseen := false
	if err != nil && !there {
		there, unseen = l.settleCreate(ctx, plan, j, err)
	}
	if unseen {
		l.storeUnseen(ctx, req.Plan, resp)
		l.unfinished(ctx, &resp.Diagnostics, "is not made", err)
		return
	}
	if err != nil && there {
		there = l.hasLeftover(ctx, plan, j)
	}
	if there {
		l.store(ctx, plan, j, req.Plan, &resp.State)
		if err == nil && resp.Diagnostics.HasError() {
			providers.CallFrom(ctx).KeepOnError() // it is made, and could not be read
		}
		if err != nil {
			resp.Diagnostics.Append(writeBegun(ctx, resp.Private, begunCreate)...)
		}
	}
	l.unfinished(ctx, &resp.Diagnostics, "is not made", err)
}

// holding returns the context of a change: with the mark of the operation, and with a look at the object
// for preconditions that fail.
func (l *life[M, P]) holding(ctx context.Context, of P, j job) context.Context {
	ctx = cloud.WithMark(ctx, cloud.MarkOf(providers.CallFrom(ctx).Operation))
	object, ok := any(of).(interface {
		isHeld(ctx context.Context, j job) (bool, error)
	})
	if !ok {
		return ctx
	}
	return cloud.Holding(ctx, func(ctx context.Context) (bool, error) { return object.isHeld(ctx, j) })
}

// hasLeftover reports whether a failed create has left something; what cannot be seen
// may be there.
func (l *life[M, P]) hasLeftover(ctx context.Context, plan P, j job) bool {
	now := new(M)
	*now = *plan
	j.diags = &diag.Diagnostics{} // store says the same again
	found, _, err := P(now).read(ctx, j)
	return found || err != nil
}

// lookTime is how long a create with an unknown result is observed.
const lookTime = 30 * time.Second

// settleCreate looks what became of a create that got no answer, or that was cut off. An
// object that exists is kept, and the next apply continues with it. unseen: whether
// it exists, or will exist, is not known: a call that was cut off may still be on
// its way.
func (l *life[M, P]) settleCreate(ctx context.Context, plan P, j job, err error) (there, unseen bool) {
	lost := errors.As(err, new(*cloud.UnsureError))
	if kind := cloud.KindOf(err); !lost && kind != cloud.Ambiguous && kind != cloud.Other {
		return false, false
	}
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	now := new(M)
	*now = *plan
	found, mark, again := P(now).read(looking, j)
	if again != nil {
		return false, lost
	}
	if !found {
		return false, lost
	}
	if mark != cloud.MarkOf(providers.CallFrom(ctx).Operation) {
		return false, false
	}
	providers.CallFrom(ctx).KeepOnError()
	return true, false
}

// storeUnseen stores the planned values of an object that may exist, with the mark for
// the next read.
func (l *life[M, P]) storeUnseen(ctx context.Context, planned tfsdk.Plan, resp *resource.CreateResponse) {
	raw, err := nullUnknown(planned.Raw)
	if err != nil {
		resp.Diagnostics.AddError("State cannot be stored", sentence(err))
		return
	}
	resp.State.Raw = raw
	resp.Diagnostics.Append(writeBegun(ctx, resp.Private, begunCreate)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, markKey, strconv.AppendQuote(nil, cloud.MarkOf(providers.CallFrom(ctx).Operation)))...)
	providers.CallFrom(ctx).KeepOnError()
}

// Update makes the object what is planned.
func (l *life[M, P]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, prior := P(new(M)), new(M)
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
	j, err := l.job(plan, &resp.Diagnostics)
	if err != nil {
		addError(&resp.Diagnostics, path.Empty(), l.kind().what+" is not changed", err)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	limit, diags := plan.head().timeouts.Update(ctx, l.kind().limit)
	resp.Diagnostics.Append(diags...)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	j.begun = readBegun(ctx, req.Private)
	plan.head().planLabels(j.cloud) // they may be known only now
	err = plan.update(l.holding(limited, plan, j), j, prior)
	if err == nil {
		l.store(ctx, plan, j, req.Plan, &resp.State)
		resp.Diagnostics.Append(writeBegun(ctx, resp.Private, "")...)
	} else {
		declareTried[M](prior, plan)
		running := errors.As(err, new(*cloud.RunningError))
		if found, _, again := P(prior).read(ctx, j); found && again == nil {
			if running { // the change is not there yet, and will be
				declareTried[M](prior, plan)
			}
			resp.Diagnostics.Append(resp.State.Set(ctx, prior)...) // as far as it came
		}
		if running && j.begun == "" {
			resp.Diagnostics.Append(writeBegun(ctx, resp.Private, begunUpdate)...)
		}
	}
	l.unfinished(ctx, &resp.Diagnostics, "is not changed", err)
}

// unfinished returns the reason why a call is incomplete. An operation that
// only takes longer is kept for the next apply.
func (l *life[M, P]) unfinished(ctx context.Context, diags *diag.Diagnostics, what string, err error) {
	var running *cloud.RunningError
	if errors.As(err, &running) {
		providers.CallFrom(ctx).KeepOnError()
		diags.AddError(l.kind().what+" is still running", sentence(err))
		return
	}
	addError(diags, path.Empty(), l.kind().what+" "+what, err)
}

// store stores the planned values, and observed ones in place of unknown ones.
func (l *life[M, P]) store(ctx context.Context, plan P, j job, planned tfsdk.Plan, state *tfsdk.State) {
	j.sizes.forget()
	found, _, err := plan.read(ctx, j)
	if err == nil && !found {
		err = errors.New("it is gone again; it may have been deleted by hand")
	}
	if err != nil {
		addError(j.diags, path.Empty(), l.kind().what+" cannot be read", err)
	}
	j.diags.Append(state.Set(ctx, plan)...)
	raw, err := fill(planned.Raw, state.Raw)
	if err != nil {
		j.diags.AddError("State cannot be stored", sentence(err))
		return
	}
	state.Raw = raw
}

// Read looks what is there. A create that was interrupted is known by its mark.
func (l *life[M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state := P(new(M))
	if resp.Diagnostics.Append(req.State.Get(ctx, state)...); resp.Diagnostics.HasError() {
		return
	}
	call := providers.CallFrom(ctx)
	j, err := l.job(state, &resp.Diagnostics)
	if err != nil {
		if call.Settling {
			addError(&resp.Diagnostics, path.Empty(), l.kind().what+" cannot be read", err)
		}
		return
	}
	before, imported := *state, state.head().id.IsNull() && !call.Settling
	found, mark, err := state.read(ctx, j)
	if err == nil && found && readBegun(ctx, req.Private) == begunUpdate &&
		slices.Contains(l.kind().unfinished, state.head().status.ValueString()) {
		declareTried[M](state, &before)
	}
	expected := readPrivate(ctx, req.Private, markKey)
	if call.Settling {
		expected = cloud.MarkOf(call.Operation)
	}
	switch {
	case err != nil && imported: // nothing is taken over that was not read
		addError(&resp.Diagnostics, path.Empty(), l.kind().what+" cannot be imported", err)
	case err != nil && call.Settling:
		addError(&resp.Diagnostics, path.Empty(), l.kind().what+" cannot be read", err)
	case err != nil && j.silent(err):
	case err != nil:
		var e *cloud.Error
		if errors.As(err, &e) && slices.Contains([]cloud.Kind{cloud.Ambiguous, cloud.Busy}, e.Kind) {
			resp.Diagnostics.AddWarning(l.kind().what+" cannot be read", sentence(err)+" Stoke uses the recorded values.")
			return
		}
		addError(&resp.Diagnostics, path.Empty(), l.kind().what+" cannot be read", err)
	case !found, expected != "" && mark != expected:
		resp.State.RemoveResource(ctx)
	default:
		resp.Diagnostics.Append(resp.State.Set(ctx, state)...)
		if call.Settling { // the end of its create was not observed
			resp.Diagnostics.Append(writeBegun(ctx, resp.Private, begunCreate)...)
		}
	}
}

// Delete removes the object and waits until it is gone.
func (l *life[M, P]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state := P(new(M))
	resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	j, err := l.job(state, &resp.Diagnostics)
	if err == nil && !resp.Diagnostics.HasError() {
		limit, diags := state.head().timeouts.Delete(ctx, l.kind().limit)
		resp.Diagnostics.Append(diags...)
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		j.begun = readBegun(ctx, req.Private)
		err = state.remove(l.holding(limited, state, j), j)
	}
	l.unfinished(ctx, &resp.Diagnostics, "is not deleted", err)
}

// addError adds an error, in Google's words if it comes from Google.
func addError(diags *diag.Diagnostics, at path.Path, summary string, err error) {
	if err == nil {
		return
	}
	detail := sentence(err)
	var e *cloud.Error
	if errors.As(err, &e) {
		summary, detail = fmt.Sprintf("%s: %s", summary, lower(e.Summary)), e.Detail
		if said := err.Error(); said != e.Error() { // in what step it was
			detail = sentence(errors.New(strings.Replace(said, e.Error(), strings.TrimSuffix(e.Detail, "."), 1)))
		}
	}
	if len(at.Steps()) == 0 {
		diags.AddError(summary, detail)
		return
	}
	diags.AddAttributeError(at, summary, detail)
}
