package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// atOnce is the number of parallel dry runs of one resource.
const atOnce = 8

// forecast finds out what an apply would do.
type forecast struct {
	*set
	cluster   *live.Cluster
	plan      common
	prior     map[string]string // texts as they are now
	was       memory
	id        string // the salt of hashes; "" while the resource has none
	owner     string // what the mark of objects says that are the resource's
	replacing bool   // prior belongs to another resource, which this one replaces
	reviewed  bool   // a review of the whole plan follows
	address   string
	keys      []string // of what is declared

	mu        sync.Mutex
	texts     map[string]string // as they will be; "" is not known
	diags     diag.Diagnostics
	notes     []string
	deletions []deletion
	replaced  []string // keys of objects that are recreated
	doubt     doubt
	sight     sight
	promise   *promise
}

func (f *forecast) run(ctx context.Context, w desiredSet) {
	f.keys = w.keys
	hashes := make([]string, len(w.objects))
	var ask []int
	for i, u := range w.objects {
		k := w.keys[i]
		hashes[i] = hashDeclared(u, f.id)
		before, now := f.was.objects[k], f.prior[k]
		if now != "" && !before.Left && !f.replacing && before.holds(now, hashes[i], f.plan.Wait) {
			f.texts[k] = now
			continue
		}
		ask = append(ask, i)
	}
	if f.id != "" {
		w.mark(f.id)
	} else {
		w.mark("new")
	}
	for _, i := range ask {
		if k := w.keys[i]; f.prior[k] == "" || f.was.objects[k].Declared != hashes[i] {
			f.settings.doubts.change(f.address, w.objects[i])
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, i := range ask {
		group.Go(func() error {
			u := w.objects[i]
			text, err := f.planText(ctx, u, w.keys[i])
			if live.Misfit(err) {
				err = f.settings.misfit(ctx, f.cluster, u, err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if err != nil {
				f.diags.Append(f.explain(u, err))
			}
			f.texts[w.keys[i]] = f.todo(u, w.keys[i], text, hashes[i])
			return nil
		})
	}
	group.Wait()
	for _, i := range ask {
		if k := w.keys[i]; f.replacing || f.prior[k] == "" || f.was.objects[k].Declared != hashes[i] {
			f.sight.changes(w.objects[i])
		}
	}
	f.prune(w)
}

// todo is the planned text of an object. The text is unknown, so that the
// object is applied, if it already has the planned values but the record does
// not confirm them: it lost its mark, its apply was cut off, or it was not
// ready.
func (f *forecast) todo(u *unstructured.Unstructured, k, text, hash string) string {
	before, now := f.was.objects[k], f.prior[k]
	if f.replacing || now == "" || text != now {
		return text
	}
	switch title := object.KeyOf(u).Title(); {
	case before.Waiting && f.plan.Wait:
		f.notes = append(f.notes, title+" was not ready when it was last applied: stoke waits for it")
	case before.Declared != hash:
		f.notes = append(f.notes, title+" is applied again, and marked as this resource's")
	default:
		return text
	}
	return ""
}

// planText asks what an apply would make of an object; "" is not known.
func (f *forecast) planText(ctx context.Context, u *unstructured.Unstructured, name string) (string, error) {
	k := object.KeyOf(u)
	current, err := f.cluster.Get(ctx, k)
	if live.WebhookDown(err) {
		f.deferDryRun(u)
		return f.unchecked(k, webhookDown)
	}
	if err != nil {
		return "", err
	}
	free := false
	if current == nil {
		err = f.noteVolume(ctx, u, k)
	} else if err = f.take(k, name, current); err == nil {
		if current.GetDeletionTimestamp() != nil {
			f.note(k.Title() + " is being deleted: stoke waits for that, and recreates it")
			return f.planRecreation(ctx, u, "")
		}
		free, err = f.noteScaler(ctx, u, current, k)
	}
	if err != nil {
		return "", err
	}
	result, err := f.dryRun(ctx, u, name, free)
	if current != nil {
		if why, failed := f.obstacle(ctx, u, k, current, err); failed != nil {
			return "", failed
		} else if why != "" {
			return f.unchecked(k, why)
		}
	}
	if err != nil {
		if why := f.laterCause(u, k, err); why != "" {
			return f.unchecked(k, why)
		}
		return f.planRefused(ctx, u, k, current, err)
	}
	if current != nil {
		f.leaving(k, current, result)
	}
	return f.textOf(u, result)
}

// noteScaler notes replicas that an autoscaler sets: see leaveToScaler.
func (f *forecast) noteScaler(ctx context.Context, u, current *unstructured.Unstructured, k object.Key) (bool, error) {
	left, free, err := leaveToScaler(ctx, f.cluster, u, current)
	if err == nil && left {
		f.note(k.Title() + ": spec.replicas is left to what scales it")
	}
	return free, err
}

// noteVolume notes a volume that a new claim cannot have as things are: another part
// of the plan may change that.
func (f *forecast) noteVolume(ctx context.Context, u *unstructured.Unstructured, k object.Key) error {
	volume := f.wantsVolume(u, func(own string) bool { return slices.Contains(f.keys, own) })
	if volume == "" || f.replacing {
		return nil
	}
	_, err := f.cluster.Available(ctx, volume, k)
	var not *live.VolumeError
	if errors.As(err, &not) {
		f.note(fmt.Sprintf("%s: as things are, %s", k.Title(), not))
		return nil
	}
	return err
}

// dryRun applies an object without effect, and takes back fields that the
// resource had. free reports that the number of replicas may be in conflict.
func (f *forecast) dryRun(ctx context.Context, u *unstructured.Unstructured, name string, free bool) (*unstructured.Unstructured, error) {
	result, err := f.cluster.Apply(ctx, u, true, f.plan.Force.ValueBool())
	all := live.Conflicts(err)
	conflicts := all
	if free {
		conflicts = withoutField(conflicts, replicasField)
	}
	if all != nil && f.ownsFields(f.prior[name], conflicts) {
		f.note(fmt.Sprintf("%s: %s", object.KeyOf(u).Title(), describeConflicts(all)))
		return f.cluster.Apply(ctx, u, true, true)
	}
	return result, err
}

// obstacle reports why a dry run of an object that is there, which had the error err,
// proves nothing: items that people have added, or another version of its kind.
func (f *forecast) obstacle(
	ctx context.Context, u *unstructured.Unstructured, k object.Key, current *unstructured.Unstructured, err error,
) (string, error) {
	if added := live.Foreign(u, current); !added.None() {
		f.note(fmt.Sprintf("%s: %s, which %s has added, is taken away", k.Title(), shorten(added.Items()), strings.Join(added.By, ", ")))
		if added.Blocks(err) && (k.Kind == "Service" || f.asNew(ctx, u) == nil) { // no other Service may have its ports
			return "what was added is in the way of a dry run", nil
		}
	}
	if !live.Misfit(err) {
		return "", nil
	}
	moves, err := f.cluster.Moves(ctx, u, current)
	if err != nil || !moves {
		return "", err
	}
	f.deferDryRun(u)
	return "it moves to another version of its kind", nil
}

// webhookDown is the reason of a plan without a dry run.
const webhookDown = "a webhook of the cluster does not answer"

// laterCause returns the cause of a refusal that may be over when the plan is applied;
// "" for another refusal.
func (f *forecast) laterCause(u *unstructured.Unstructured, k object.Key, err error) string {
	missing := live.MissingNamespace(err)
	if missing == "" {
		missing = live.Terminating(err, k)
	}
	switch {
	case isNoKind(err):
		f.doubtful(f.doubt.kinds, kindName(u), k)
		f.deferDryRun(u)
		return "the cluster does not know its kind yet"
	case missing != "":
		f.doubtful(f.doubt.namespaces, missing, k)
		f.deferDryRun(u)
		return "its namespace " + missing + " is not there yet"
	case live.NoDryRun(err):
		return "a webhook of the cluster allows no dry run"
	case live.WebhookDown(err):
		return webhookDown
	case live.Misfit(err) && f.settings.doubts.changing(kindName(u)):
		f.deferDryRun(u)
		return "the plan changes its CRD"
	}
	return ""
}

// planRefused recreates an object whose change is refused, where it can; current is
// nil for a new object.
func (f *forecast) planRefused(
	ctx context.Context, u *unstructured.Unstructured, k object.Key, current *unstructured.Unstructured, err error,
) (string, error) {
	if current == nil {
		return "", err
	}
	if fields := live.FixedFields(k.GroupKind(), err); len(fields) > 0 {
		return f.planRecreation(ctx, u, "is deleted and recreated: "+strings.Join(fields, ", ")+" cannot be changed")
	}
	if live.Refuses(err) && f.asNew(ctx, u) == nil {
		return "", &frozenError{err, k, live.ListUndeclared(u, current)}
	}
	return "", err
}

// leaving notes fields that go although others have set them as well.
func (f *forecast) leaving(k object.Key, current, result *unstructured.Unstructured) {
	if shared := live.SharedBy(current, result); !shared.None() {
		f.note(fmt.Sprintf("%s: %s is removed, which %s has set as well", k.Title(), shorten(shared.Fields()), strings.Join(shared.By, ", ")))
	}
	if tools := live.Tools(current); len(tools) > 0 {
		if going := live.Inherited(current, result, tools); len(going) > 0 {
			f.note(fmt.Sprintf("%s is taken over from %s; it loses %s, which the manifest leaves out",
				k.Title(), strings.Join(tools, ", "), shorten(going)))
		}
	}
}

// take checks that a live object may be applied: it belongs to the resource, or
// to another one that gives it up, which the review knows.
func (f *forecast) take(k object.Key, name string, current *unstructured.Unstructured) error {
	mark := current.GetLabels()[live.Mark]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.was.objects[name].ours(current, f.owner) {
		if f.replacing && mark != "" { // which may be made before the other is destroyed
			f.promise.Takes[name] = mark
		}
		return nil
	}
	if mark == "" || !f.reviewed {
		return &existsError{k}
	}
	f.doubt.takes[name], f.promise.Takes[name] = mark, mark
	return nil
}

func (f *forecast) doubtful(of map[string][]string, name string, k object.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of[name] = append(of[name], k.String())
}

// deferDryRun remembers an object that no dry run could be made of.
func (f *forecast) deferDryRun(u *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sight.unseen = append(f.sight.unseen, u.DeepCopy())
}

// textOf is what the state will say of an object.
func (f *forecast) textOf(want, result *unstructured.Unstructured) (string, error) {
	if f.id == "" && object.IsSecret(want) {
		return "", nil // the salt of its hash is the resource's id
	}
	return f.text(want, result, f.id)
}

// unchecked notes what only the apply can tell.
func (f *forecast) unchecked(k object.Key, why string) (string, error) {
	f.note(fmt.Sprintf("%s is checked at apply: %s", k.Title(), why))
	return "", nil
}

// planRecreation plans an object that is deleted first: it is made as if it were not
// there. An object that cannot be there twice, under whatever name, is not known
// before. why is the reason of the deletion; "" where stoke did not delete it.
func (f *forecast) planRecreation(ctx context.Context, u *unstructured.Unstructured, why string) (string, error) {
	k := object.KeyOf(u)
	if !f.replacing && f.keeps(f.plan, k) {
		return "", &dataError{k, "would be deleted and recreated"}
	}
	f.remake(k, why)
	result, err := f.trial(ctx, u)
	switch {
	case live.Refuses(err) && k.Kind != "Service": // no other object may have its ports and addresses
		return "", err
	case err != nil:
		return f.unchecked(k, "the observed objects prevent a dry run")
	}
	result = result.DeepCopy()
	result.SetName(u.GetName())
	return f.textOf(u, result)
}

// remake notes an object that is recreated. Where the whole resource is, the totals
// count it.
func (f *forecast) remake(k object.Key, why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if why != "" {
		f.promise.Anew = append(f.promise.Anew, k.String())
	}
	if f.replacing {
		return
	}
	f.replaced = append(f.replaced, k.String())
	if why != "" {
		f.deletions = append(f.deletions, deletion{k.Title() + " " + why, true})
	}
}

// trial asks what would come of an object if it were new, under another name.
func (f *forecast) trial(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	other := u.DeepCopy()
	other.SetName(object.Trial(u.GetName()))
	return f.cluster.Apply(ctx, other, true, false)
}

// asNew returns the error of an object if it were new.
func (f *forecast) asNew(ctx context.Context, u *unstructured.Unstructured) error {
	_, err := f.trial(ctx, u)
	return err
}

// deletion is an object that the plan deletes, and makes again where again is set.
type deletion struct {
	text  string
	again bool
}

// note is for the plan's totals.
func (d deletion) note() providers.Note {
	n := providers.Note{Kind: providers.NoteDeletion, Text: d.text}
	if d.again {
		n.Number = 1
	}
	return n
}

// keeps reports an object that is not deleted without being asked to, for the
// data that would go with it.
func (r *set) keeps(c common, k object.Key) bool {
	return r.kind.waits && object.HoldsData(k.GroupKind()) && !c.Prune
}

// ownsFields reports whether all fields in conflict are fields of an applied text:
// another manager changed them since, and they are taken back.
func (r *set) ownsFields(text string, conflicts []live.Conflict) bool {
	if len(conflicts) == 0 {
		return true
	}
	u, err := object.FromText(text)
	if err != nil || text == "" {
		return false
	}
	for _, conflict := range conflicts {
		if !object.HasField(u, conflict.Field) {
			return false
		}
	}
	return true
}

func describeConflicts(conflicts []live.Conflict) string {
	var parts []string
	for _, c := range conflicts {
		parts = append(parts, fmt.Sprintf("%s is taken back from %s", c.Field, c.Manager))
	}
	return strings.Join(parts, "; ")
}

func (f *forecast) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, text)
}

// prune looks at what is no longer declared. Whether another resource takes it
// over, the review knows.
func (f *forecast) prune(w desiredSet) {
	if f.replacing || w.unsure {
		return
	}
	for _, name := range undeclared(f.prior, w.keys) {
		k, err := object.ParseKey(name)
		if err != nil || f.settings.doubts.moved(f.cluster.ID, name, f.address) {
			continue
		}
		if f.reviewed {
			f.doubt.gone = append(f.doubt.gone, leavingObject{k, f.keeps(f.plan, k)})
			continue
		}
		f.deletions = append(f.deletions, deletion{text: k.Title() + " is deleted: it is no longer declared"})
		if f.keeps(f.plan, k) {
			f.diags.Append(f.explainData(&dataError{k, "is no longer declared and would be deleted"}))
		}
	}
}

// undeclared returns the existing objects that are no longer declared.
func undeclared(prior map[string]string, keys []string) []string {
	gone := maps.Clone(prior)
	for _, name := range keys {
		delete(gone, name)
	}
	return slices.Sorted(maps.Keys(gone))
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

func isNoKind(err error) bool { return errors.As(err, new(*live.NoKindError)) }
