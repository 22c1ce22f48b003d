package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/zclconf/go-cty/cty"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/runtime/pattern"
)

// existsError: an object exists that the resource did not make.
type existsError struct{ key object.Key }

func (e *existsError) Error() string { return e.key.Title() + " exists already" }

// dataError: the change would delete data without delete_data.
type dataError struct {
	key object.Key
	why string
}

func (e *dataError) Error() string { return e.key.Title() + " " + e.why }

func (r *set) explainData(e *dataError) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(r.kind.at, "Data would be deleted", dataDetail(e))
}

func dataDetail(e *dataError) string {
	return fmt.Sprintf("%s, which would delete its content. Set prune_data = true to allow that, or declare it as it was.", e)
}

// explain is what people read about an object that the API server refuses: of a
// Secret without what it holds.
func (r *set) explain(u *unstructured.Unstructured, err error) diag.Diagnostic {
	d := r.explainKey(object.KeyOf(u), err)
	detail, at := d.Detail(), r.kind.at
	if with, ok := d.(diag.DiagnosticWithPath); ok {
		at = with.Path()
	}
	if where := r.from.placeOf(u); where != "" {
		detail += " It is declared in " + where + "."
	}
	if object.IsSecret(u) {
		detail, at = object.RedactSecret(u, detail), r.kind.at
	}
	return diag.NewAttributeErrorDiagnostic(at, d.Summary(), detail)
}

func (r *set) explainKey(k object.Key, err error) diag.Diagnostic {
	at := func(summary, format string, args ...any) diag.Diagnostic {
		return diag.NewAttributeErrorDiagnostic(r.kind.attribute(err), summary, fmt.Sprintf(format, args...))
	}
	var exists *existsError
	var volume *live.VolumeError
	var still *live.StillThereError
	var data *dataError
	var kept *keptError
	conflicts := live.Conflicts(err)
	switch {
	case errors.As(err, &data):
		return r.explainData(data)
	case errors.As(err, &kept):
		return at("Fields are still there", "%s. Apply again.", kept)
	case live.Terminating(err, k) != "":
		return at("Namespace is being deleted", "%s: the namespace %s is going, and nothing can be made in it until it has gone. `kubectl get namespace %[2]s -o yaml` says in its status what holds it.", k.Title(), live.Terminating(err, k))
	case errors.As(err, &volume):
		return diag.NewAttributeErrorDiagnostic(path.Root("volume_name"), "Volume cannot be had", upper(volume.Error())+". "+volume.Advice)
	case errors.As(err, &exists):
		return at("Object exists already", "%s", existsDetail(k))
	case slices.ContainsFunc(conflicts, func(c live.Conflict) bool { return strings.Contains(c.Field, live.Mark) }):
		return at("Object carries another mark", "%s: its label %s, which identifies the owner of an object for "+
			"stoke, was set to another resource. Remove the label (`kubectl label … %[2]s-`), and it is set again.", k.Title(), live.Mark)
	case len(conflicts) > 0:
		var parts []string
		for _, c := range conflicts {
			parts = append(parts, fmt.Sprintf("%s is set by %s", c.Field, c.Manager))
		}
		return at("Fields belong to another manager", "%s: %s. Leave these fields out, or set force_conflicts = true to take them over.", k.Title(), strings.Join(parts, "; "))
	case isNoKind(err):
		return at("Unknown kind", "%s: %s. Install what brings it (its CRD) first.", k.Title(), err)
	case live.MissingNamespace(err) != "":
		return at("Namespace is missing", "%s: the cluster has no namespace %s. Declare it as a kube_namespace that this resource depends on.", k.Title(), live.MissingNamespace(err))
	case errors.As(err, &still):
		return at("Object does not go", "%s.", err)
	case len(live.FixedFields(k.GroupKind(), err)) > 0:
		return at("Fields cannot be changed", "%s: %s cannot be changed once it is there, and the plan did not know. "+
			"Nothing was deleted. Plan again.", k.Title(), strings.Join(live.FixedFields(k.GroupKind(), err), ", "))
	case live.WebhookDown(err):
		return at("A webhook does not answer", "%s: %s. The next plan asks the webhook again; look whether its pods run.",
			k.Title(), message(err))
	case policy.MatchString(message(err)):
		return at("A policy refuses the object", "%s: %s.", k.Title(), message(err))
	case webhook.MatchString(message(err)):
		return at("A webhook refuses the object", "%s: %s.", k.Title(), message(err))
	case apierrors.IsForbidden(err) && strings.Contains(message(err), "exceeded quota"):
		return at("Quota of the namespace exceeded", "%s: %s.", k.Title(), message(err))
	case apierrors.IsForbidden(err) && rights.MatchString(message(err)):
		return at("Not allowed by the cluster", "%s: %s. Give the user of the connection the right to it.", k.Title(), message(err))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), untyped.MatchString(message(err)):
		return at("The API server refuses the object", "%s: %s.%s", k.Title(), message(err), wayOut(err))
	}
	return at("Object cannot be applied", "%s: %s", k.Title(), sentence(err))
}

// frozenError is for a change of an object that is refused, where the API server would
// accept a new object like that.
type frozenError struct {
	error
	key        object.Key
	undeclared live.SharedFields
}

func (e *frozenError) Unwrap() error { return e.error }

// wayOut returns the advice about a refused object, or about a refused change of an
// object.
func wayOut(err error) string {
	var misfit *misfitError
	if errors.As(err, &misfit) {
		return " That is: " + misfit.findings + "."
	}
	var frozen *frozenError
	if !errors.As(err, &frozen) {
		return ""
	}
	if others := frozen.undeclared; !others.None() {
		return fmt.Sprintf(" A new object would be accepted. The reason may be %s, which the manifest leaves out and %s has set: "+
			"remove it with kubectl edit, or undo the change.", shorten(others.Fields()), strings.Join(others.By, ", "))
	}
	return fmt.Sprintf(" A new object would be accepted, but stoke does not recreate a %s: "+
		"objects that depend on it could be deleted as well. Undo the change; or delete the object yourself (kubectl delete), and the next apply makes it.", frozen.key.Kind)
}

func existsDetail(k object.Key) string {
	return fmt.Sprintf("%s is in the cluster, and this resource did not make it. Take it over with `stoke import ADDRESS '%s'`, or give it another name.", k.Title(), k)
}

// rights is how an API server says that a user lacks them; an admission plugin
// that forbids something for other reasons does not.
var rights = pattern.New(`cannot [a-z]+ (resource|path)|RBAC|attempting to grant`)

// attribute is where an error about fields of an object is shown.
func (k kind) attribute(err error) path.Path {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return k.at
	}
	fields := map[string]string{"metadata.labels": "labels", "metadata.annotations": "annotations", "metadata.namespace": "namespace"}
	if k.of.Empty() {
		return k.at
	}
	maps.Copy(fields, k.fields)
	for _, cause := range status.Status().Details.Causes {
		best := ""
		for begin := range fields {
			if strings.HasPrefix(cause.Field, begin) && len(begin) > len(best) {
				best = begin
			}
		}
		if best != "" {
			return path.Root(fields[best])
		}
	}
	return k.at
}

// untyped is how an API server refuses fields that the kind does not have, or
// values of another type: as an internal error.
var untyped = pattern.New(`failed to create (typed patch|manager for existing) object`)

var (
	webhook = pattern.New(`admission webhook`)
	policy  = pattern.New(`^ValidatingAdmissionPolicy|ValidatingAdmissionPolicy '`)
)

// message is what an API server says, without the object's name before it.
func message(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err.Error()
	}
	s := status.Status()
	if s.Details != nil && len(s.Details.Causes) > 0 && apierrors.IsInvalid(err) {
		var parts []string
		for _, c := range s.Details.Causes {
			parts = append(parts, strings.TrimPrefix(c.Field+": "+c.Message, ": "))
		}
		return strings.Join(parts, "; ")
	}
	return strings.TrimSuffix(s.Message, ".")
}

// sentence is an error as a sentence.
func sentence(err error) string { return strings.TrimSuffix(message(err), ".") + "." }

// note adds a note to the plan. An engine without a place for it shows a
// warning.
func note(ctx context.Context, resp *resource.ModifyPlanResponse, at path.Path, n providers.Note) {
	var to cty.Path
	for _, step := range at.Steps() {
		if name, ok := step.(path.PathStepAttributeName); ok {
			to = to.GetAttr(string(name))
		}
	}
	if n.Path = to; !providers.CallFrom(ctx).AddNote(n) {
		resp.Diagnostics.AddAttributeWarning(at, "Effect of this change", n.Text+".")
	}
}

// warned shows a warning of an API server once for each text: next to the plan, or as
// a line of an apply where no plan has shown it.
func (d *doubts) warned(ctx context.Context, text string) {
	call := providers.CallFrom(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if by := d.warns[text]; by != nil && (by == call || call.Note == nil || by.Address != call.Address) {
		return // another plan of the same resource shows it again
	}
	said := "the API server warns: " + strings.TrimSuffix(text, ".")
	if !call.AddNote(providers.Note{Kind: providers.NoteFact, Text: said}) {
		if call.Operation == "" {
			return // a read: the plan repeats the request
		}
		call.Report(providers.Progress{Line: said, Percent: -1})
	}
	if d.warns == nil {
		d.warns = map[string]*providers.Call{}
	}
	d.warns[text] = call
}
