package kubetest

import (
	"context"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Grant is what a user may do.
type Grant struct {
	// Namespace is where; "" is the whole cluster.
	Namespace string
	// Rules are what, as in a Role or a ClusterRole.
	Rules []rbac.PolicyRule
}

// everything is what an administrator may do.
var everything = []rbac.PolicyRule{
	{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
}

// Grant lets a user, or a service account by its user name, do something until
// the test ends. It returns when the API server knows.
func (c *Cluster) Grant(t testing.TB, user string, grants ...Grant) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, g := range grants {
		undo, err := c.grant(ctx, user, g)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			undo(ctx) // the namespace may be gone, and the API server stopped
		})
		if err != nil {
			t.Fatalf("grant %s something: %v", user, err)
		}
		if err := c.until(ctx, "the API server knows what "+user+" may do", func(ctx context.Context) (bool, error) {
			return c.allowed(ctx, user, g)
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// grant binds a role of its own to a user. undo is never nil.
func (c *Cluster) grant(ctx context.Context, user string, g Grant) (undo func(context.Context), err error) {
	client := c.Client.RbacV1()
	meta := metav1.ObjectMeta{GenerateName: "kubetest-"}
	subjects := []rbac.Subject{{Kind: rbac.UserKind, APIGroup: rbac.GroupName, Name: user}}
	if g.Namespace == "" {
		role, err := client.ClusterRoles().Create(ctx, &rbac.ClusterRole{ObjectMeta: meta, Rules: g.Rules}, metav1.CreateOptions{})
		if err != nil {
			return func(context.Context) {}, err
		}
		_, err = client.ClusterRoleBindings().Create(ctx, &rbac.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
			RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: role.Name},
		}, metav1.CreateOptions{})
		return func(ctx context.Context) {
			_ = client.ClusterRoleBindings().Delete(ctx, role.Name, metav1.DeleteOptions{})
			_ = client.ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{})
		}, err
	}
	role, err := client.Roles(g.Namespace).Create(ctx, &rbac.Role{ObjectMeta: meta, Rules: g.Rules}, metav1.CreateOptions{})
	if err != nil {
		return func(context.Context) {}, err
	}
	_, err = client.RoleBindings(g.Namespace).Create(ctx, &rbac.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
		RoleRef: rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "Role", Name: role.Name},
	}, metav1.CreateOptions{})
	return func(ctx context.Context) {
		_ = client.RoleBindings(g.Namespace).Delete(ctx, role.Name, metav1.DeleteOptions{})
		_ = client.Roles(g.Namespace).Delete(ctx, role.Name, metav1.DeleteOptions{})
	}, err
}

// allowed asks the API server for the first thing that each rule allows.
func (c *Cluster) allowed(ctx context.Context, user string, g Grant) (bool, error) {
	for _, rule := range g.Rules {
		spec := authorization.SubjectAccessReviewSpec{User: user}
		if len(rule.NonResourceURLs) > 0 {
			spec.NonResourceAttributes = &authorization.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: rule.Verbs[0]}
		} else {
			resource, part, _ := strings.Cut(rule.Resources[0], "/")
			spec.ResourceAttributes = &authorization.ResourceAttributes{
				Namespace: g.Namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: part,
			}
			if len(rule.ResourceNames) > 0 {
				spec.ResourceAttributes.Name = rule.ResourceNames[0]
			}
		}
		review, err := c.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorization.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil || !review.Status.Allowed {
			return false, err
		}
	}
	return true, nil
}
