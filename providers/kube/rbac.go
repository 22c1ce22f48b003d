package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// rbac is the kind for access rights: roles with the least that a task needs,
// and their bindings.
var rbac = kind{
	name: "rbac", at: path.Root("name"),
	description: "Access rights: roles with the least that a task needs, bound to users, groups and service " +
		"accounts. No role may read Secrets outside of namespaces, or change roles.",
	attributes: func() map[string]schema.Attribute {
		replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
		names := func(description string) schema.ListAttribute {
			return schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: description}
		}
		namespaces := names("Namespaces where the task is done. Each gets a role and a binding.")
		namespaces.Optional, namespaces.Required = false, true
		return map[string]schema.Attribute{
			"name": schema.StringAttribute{Required: true, Description: "Name of the roles, the bindings and the service account.", PlanModifiers: replace},
			"task": schema.StringAttribute{Required: true, Description: `The purpose: "reader" (see workloads, pods, logs, events and nodes), "training" (start, watch and stop experiments), or "pipeline" (apply the objects of this provider, Secrets among them).`},
			"cluster_objects": schema.BoolAttribute{
				Optional: true, Description: `With the task "pipeline": also namespaces, volumes, CRDs, and priority, storage and runtime classes. Default: false.`,
			},
			"namespaces": namespaces,
			"rules": schema.ListNestedAttribute{
				Optional: true, Description: "Further rights in the namespaces, such as for objects of CRDs.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"api_groups": schema.ListAttribute{Required: true, ElementType: types.StringType, Description: `Groups, such as "kubeflow.org"; "" is the core.`},
					"resources":  schema.ListAttribute{Required: true, ElementType: types.StringType, Description: `Resources, such as "trainjobs".`},
					"verbs":      schema.ListAttribute{Required: true, ElementType: types.StringType, Description: "Verbs: get, list, watch, create, update, patch, delete."},
				}},
			},
			"users":            names("Users, as the cluster calls them."),
			"groups":           names("Groups of users."),
			"service_accounts": names(`Service accounts that are there already, as "NAMESPACE/NAME".`),
			"service_account_namespace": schema.StringAttribute{
				Optional: true, Description: "Namespace of a service account that is made for the task, and called name. Default: none is made.",
			},
		}
	},
	render: renderRBAC,
}

const (
	taskReader   = "reader"
	taskTraining = "training"
	taskPipeline = "pipeline"
)

// renderRBAC makes the service account, a ClusterRole for objects without a
// namespace, a Role for each namespace, and their bindings.
func renderRBAC(ctx context.Context, config tfsdk.Config) ([]*unstructured.Unstructured, bool, diag.Diagnostics) {
	r := &reader{ctx: ctx, config: config, known: true}
	name, task, account := r.text("name"), r.text("task"), r.text("service_account_namespace")
	namespaces, clusterObjects := r.list("namespaces"), r.flag("cluster_objects", false)
	more := r.rules("rules")
	subjects := subjectsOf(r, name, account)
	inNamespaces, inCluster := taskRules(task, clusterObjects)
	switch {
	case !r.known || r.diags.HasError():
		return nil, r.known, r.diags
	case inNamespaces == nil:
		r.diags.AddAttributeError(path.Root("task"), "Unknown task", fmt.Sprintf("%q is none. Give %q, %q or %q.", task, taskReader, taskTraining, taskPipeline))
	case clusterObjects && task != taskPipeline:
		r.diags.AddAttributeError(path.Root("cluster_objects"), "Cluster-wide objects without a pipeline", fmt.Sprintf("Only the task %q changes them.", taskPipeline))
	case len(namespaces) == 0:
		r.diags.AddAttributeError(path.Root("namespaces"), "No namespace", "Give at least one.")
	case len(subjects) == 0:
		r.diags.AddAttributeError(path.Root("name"), "No subjects given", "Give users, groups or service_accounts, or service_account_namespace to have one made.")
	}
	seen := map[string]bool{}
	for i, ns := range namespaces {
		if seen[ns] {
			r.diags.AddAttributeError(path.Root("namespaces").AtListIndex(i), "Namespace given twice", "Leave one of them out.")
		}
		seen[ns] = true
	}
	if r.diags.HasError() {
		return nil, true, r.diags
	}
	var all []*unstructured.Unstructured
	add := func(kind, ns string, fields map[string]any) {
		version := rbacv1.SchemeGroupVersion.String()
		if kind == rbacv1.ServiceAccountKind {
			version = "v1"
		}
		u := &unstructured.Unstructured{Object: fields}
		u.SetAPIVersion(version)
		u.SetKind(kind)
		u.SetName(name)
		u.SetNamespace(ns)
		all = append(all, u)
	}
	if account != "" {
		add(rbacv1.ServiceAccountKind, account, map[string]any{})
	}
	add("ClusterRole", "", map[string]any{"rules": rulesAsAny(inCluster)})
	add("ClusterRoleBinding", "", binding("ClusterRole", name, subjects))
	for _, ns := range namespaces {
		add("Role", ns, map[string]any{"rules": rulesAsAny(append(slices.Clip(inNamespaces), more...))})
		add("RoleBinding", ns, binding("Role", name, subjects))
	}
	return all, true, r.diags
}

func binding(kind, name string, subjects []any) map[string]any {
	return map[string]any{
		"roleRef":  map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": name},
		"subjects": subjects,
	}
}

// subjectsOf returns the users, groups and accounts of the bindings.
func subjectsOf(r *reader, name, account string) (all []any) {
	for _, of := range []struct{ attribute, kind string }{{"users", rbacv1.UserKind}, {"groups", rbacv1.GroupKind}} {
		for _, who := range r.list(of.attribute) {
			all = append(all, map[string]any{"apiGroup": rbacv1.GroupName, "kind": of.kind, "name": who})
		}
	}
	accounts := r.list("service_accounts")
	if account != "" {
		accounts = append(accounts, account+"/"+name)
	}
	for _, who := range accounts {
		ns, of, ok := strings.Cut(who, "/")
		if !ok || ns == "" || of == "" || strings.Contains(of, "/") {
			r.diags.AddAttributeError(path.Root("service_accounts"), "Invalid service account", fmt.Sprintf("%q is none. Write NAMESPACE/NAME.", who))
			continue
		}
		all = append(all, map[string]any{"kind": rbacv1.ServiceAccountKind, "namespace": ns, "name": of})
	}
	return all
}

// rulesAsAny are rules as an object has them.
func rulesAsAny(rules []rbacv1.PolicyRule) []any {
	out := make([]any, 0, len(rules))
	for i := range rules {
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rules[i])
		if err != nil { // lists of texts always can be
			panic(err)
		}
		out = append(out, m)
	}
	return out
}

// list reads a list of texts, which are not empty.
func (r *reader) list(name string) []string {
	var v types.List
	r.diags.Append(r.config.GetAttribute(r.ctx, path.Root(name), &v)...)
	return r.elements(path.Root(name), v)
}

func (r *reader) elements(at path.Path, v types.List) (all []string) {
	r.known = r.known && !v.IsUnknown()
	for i, e := range v.Elements() {
		s, ok := e.(types.String)
		switch {
		case !ok || s.IsUnknown():
			r.known = false
		case s.IsNull():
			r.diags.AddAttributeError(at.AtListIndex(i), "Value missing", "Remove the entry, or give it a value.")
		default:
			all = append(all, s.ValueString())
		}
	}
	return all
}

// rules reads a list of rules.
func (r *reader) rules(name string) (all []rbacv1.PolicyRule) {
	var v types.List
	r.diags.Append(r.config.GetAttribute(r.ctx, path.Root(name), &v)...)
	r.known = r.known && !v.IsUnknown()
	for i, e := range v.Elements() {
		o, ok := e.(types.Object)
		if !ok || o.IsUnknown() || o.IsNull() {
			r.known = r.known && ok && !o.IsUnknown()
			continue
		}
		parts := map[string][]string{}
		for _, part := range slices.Sorted(maps.Keys(o.Attributes())) {
			at := path.Root(name).AtListIndex(i).AtName(part)
			list, _ := o.Attributes()[part].(types.List)
			if parts[part] = r.elements(at, list); r.known && len(parts[part]) == 0 {
				r.diags.AddAttributeError(at, "Empty list", "A rule needs at least one of each.")
			}
		}
		all = append(all, rbacv1.PolicyRule{APIGroups: parts["api_groups"], Resources: parts["resources"], Verbs: parts["verbs"]})
	}
	return all
}
