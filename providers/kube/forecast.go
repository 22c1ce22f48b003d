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

// atOnce is how many objects of one resource are asked about at a time.
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
	replacing bool   // prior is another resource's, which this one is made in place of
	reviewed  bool   // a review of the whole plan follows
	address   string
	keys      []string // of what is declared

	mu        sync.Mutex
	texts     map[string]string // as they will be; "" is not known
	diags     diag.Diagnostics
	notes     []string
	deletions []deletion
	replaced  []string // keys of objects that are made anew
	doubt     doubt
	sight     sight
	promise   *promise
}

func (f *forecast) run(ctx context.Context, w wanted) {
	f.keys = w.keys
	hashes := make([]string, len(w.objects))
	var ask []int
	for i, u := range w.objects {
		k := w.keys[i]
		hashes[i] = declared(u, f.id)
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
			text, err := f.one(ctx, u, w.keys[i])
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

// todo is the planned text of an object. One that is as it is to be already,
// but of which that is not remembered, is not known, so that it is applied: it
// lost its mark, its apply was cut off, or it was not ready.
func (f *forecast) todo(u *unstructured.Unstructured, k, text, hash string) string {
	before, now := f.was.objects[k], f.prior[k]
	if f.replacing || now == "" || text != now {
		return text
	}
	switch title := object.KeyOf(u).Title(); {
	case before.Waiting && f.plan.Wait:
		f.notes = append(f.notes, title+" was not ready when it was last applied: it is waited for")
	case before.Declared != hash:
		f.notes = append(f.notes, title+" is applied again, and marked as this resource's")
	default:
		return text
	}
	return ""
}

// one asks what an apply would make of an object; "" is not known.
func (f *forecast) one(ctx context.Context, u *unstructured.Unstructured, name string) (string, error) {
	k := object.KeyOf(u)
	current, err := f.cluster.Get(ctx, k)
	if err != nil {
		return "", err
	}
	free := false
	if current != nil {
		if err := f.take(k, name, current); err != nil {
			return "", err
		}
		if current.GetDeletionTimestamp() != nil {
			f.note(k.Title() + " is being deleted: it is waited for, and made anew")
			return f.anew(ctx, u, "")
		}
		var left bool
		if left, free, err = leaveToScaler(ctx, f.cluster, u, current); err != nil {
			return "", err
		}
		if left {
			f.note(k.Title() + ": spec.replicas is left to what scales it")
		}
	}
	if volume := f.wantsVolume(u, func(own string) bool { return slices.Contains(f.keys, own) }); volume != "" && current == nil && !f.replacing {
		var not *live.VolumeError
		if _, err := f.cluster.Available(ctx, volume, k); errors.As(err, &not) { // another part of the plan may change that
			f.note(fmt.Sprintf("%s: as things are, %s", k.Title(), not))
		} else if err != nil {
			return "", err
		}
	}
	result, err := f.dry(ctx, u, name, free)
	if current != nil {
		if added := live.Foreign(u, current); !added.None() {
			f.note(fmt.Sprintf("%s: %s, which %s has added, is taken away", k.Title(), few(added.Items()), strings.Join(added.By, ", ")))
			if added.Blocks(err) {
				return f.unchecked(k, "what was added is in the way of a dry run")
			}
		}
	}
	switch {
	case err != nil && current != nil:
		return f.refusedChange(ctx, u, current, err)
	case err != nil:
		return f.refused(u, err)
	case current != nil:
		f.leaving(k, current, result)
	}
	return f.textOf(u, result)
}

// dry is the dry run of an apply. Fields that were ours are taken back.
func (f *forecast) dry(ctx context.Context, u *unstructured.Unstructured, name string, free bool) (*unstructured.Unstructured, error) {
	result, err := f.cluster.Apply(ctx, u, true, f.plan.Force.ValueBool())
	conflicts := live.Conflicts(err)
	if free {
		conflicts = except(conflicts, replicasField)
	}
	if live.Conflicts(err) != nil && f.own(f.prior[name], conflicts) {
		f.note(fmt.Sprintf("%s: %s", object.KeyOf(u).Title(), taken(live.Conflicts(err))))
		result, err = f.cluster.Apply(ctx, u, true, true)
	}
	return result, err
}

// refused tells what a refused dry run means: that only the apply can tell, or an error.
func (f *forecast) refused(u *unstructured.Unstructured, err error) (string, error) {
	k := object.KeyOf(u)
	missing := live.MissingNamespace(err)
	if missing == "" {
		missing = live.Terminating(err, k)
	}
	switch {
	case isNoKind(err):
		f.doubtful(f.doubt.kinds, kindName(u), k)
		f.unseen(u)
		return f.unchecked(k, "the cluster does not know its kind yet")
	case missing != "":
		f.doubtful(f.doubt.namespaces, missing, k)
		f.unseen(u)
		return f.unchecked(k, "its namespace "+missing+" is not there yet")
	case live.NoDryRun(err):
		return f.unchecked(k, "a webhook of the cluster allows no dry run")
	case live.WebhookDown(err):
		return f.unchecked(k, "a webhook of the cluster does not answer")
	case live.Misfit(err) && f.settings.doubts.changing(kindName(u)):
		f.unseen(u)
		return f.unchecked(k, "the plan changes its CRD")
	}
	return "", err
}

// refusedChange is refused for an object that is there.
func (f *forecast) refusedChange(ctx context.Context, u, current *unstructured.Unstructured, err error) (string, error) {
	k := object.KeyOf(u)
	if live.Misfit(err) {
		if moves, wrong := f.cluster.Moves(ctx, u, current); wrong != nil {
			return "", wrong
		} else if moves {
			f.unseen(u)
			return f.unchecked(k, "it comes to another version of its kind")
		}
	}
	text, wrong := f.refused(u, err)
	switch {
	case wrong == nil:
		return text, nil
	case len(live.Fixed(k.GroupKind(), err)) > 0:
		return f.anew(ctx, u, "is deleted and made anew: "+strings.Join(live.Fixed(k.GroupKind(), err), ", ")+" cannot be changed")
	case live.Refuses(err) && f.asNew(ctx, u) == nil:
		return "", &frozenError{err, k}
	}
	return "", wrong
}

// leaving notes fields that go although others have set them as well.
func (f *forecast) leaving(k object.Key, current, result *unstructured.Unstructured) {
	if shared := live.SharedBy(current, result); !shared.None() {
		f.note(fmt.Sprintf("%s: %s is removed, which %s has set as well", k.Title(), few(shared.Fields()), strings.Join(shared.By, ", ")))
	}
	if tools := live.Tools(current); len(tools) > 0 {
		if going := live.Inherited(current, result, tools); len(going) > 0 {
			f.note(fmt.Sprintf("%s is taken over from %s; it loses %s, which the manifest leaves out", k.Title(), strings.Join(tools, ", "), few(going)))
		}
	}
}

// take checks that a live object may be applied: it is the resource's, or
// another resource's that gives it up, which the review knows.
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

// unseen remembers an object that no dry run could be made of.
func (f *forecast) unseen(u *unstructured.Unstructured) {
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

// anew plans an object that goes first: it is made as if it were not there. What
// cannot be there twice, under whatever name, is not known before. why is why it is
// deleted for that; "" where somebody else has done so.
func (f *forecast) anew(ctx context.Context, u *unstructured.Unstructured, why string) (string, error) {
	k := object.KeyOf(u)
	if !f.replacing && f.keeps(f.plan, k) {
		return "", &dataError{k, "would be deleted to be made anew"}
	}
	f.remake(k, why)
	result, err := f.trial(ctx, u)
	switch {
	case live.Refuses(err) && k.Kind != "Service": // whose ports and addresses nobody else may have
		return "", err
	case err != nil:
		return f.unchecked(k, "what is there now stands in the way of a dry run")
	}
	result = result.DeepCopy()
	result.SetName(u.GetName())
	return f.textOf(u, result)
}

// remake notes an object that is made anew. Where the whole resource is, the totals
// have it.
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

// asNew is what is wrong with an object if it were new.
func (f *forecast) asNew(ctx context.Context, u *unstructured.Unstructured) error {
	_, err := f.trial(ctx, u)
	return err
}

// deletion is an object that the plan deletes; again says that it is made anew.
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

// own reports that all fields in conflict are ones of a text that was applied:
// somebody changed them since, and they are taken back.
func (r *set) own(text string, conflicts []live.Conflict) bool {
	if len(conflicts) == 0 {
		return true
	}
	u, err := object.FromText(text)
	if err != nil || text == "" {
		return false
	}
	for _, conflict := range conflicts {
		if !object.Has(u, conflict.Field) {
			return false
		}
	}
	return true
}

func taken(conflicts []live.Conflict) string {
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
func (f *forecast) prune(w wanted) {
	if f.replacing || w.unsure {
		return
	}
	for _, name := range undeclared(f.prior, w.keys) {
		k, err := object.ParseKey(name)
		if err != nil || f.settings.doubts.moved(f.cluster.ID, name, f.address) {
			continue
		}
		if f.reviewed {
			f.doubt.gone = append(f.doubt.gone, going{k, f.keeps(f.plan, k)})
			continue
		}
		f.deletions = append(f.deletions, deletion{text: k.Title() + " is deleted: it is no longer declared"})
		if f.keeps(f.plan, k) {
			f.diags.Append(f.explainData(&dataError{k, "is no longer declared and would be deleted"}))
		}
	}
}

// undeclared are the objects that are there and not declared any more.
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
