package live

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// handMade is a Deployment of ours to which kubectl has added fields: an env, another
// handler of a probe, and a service account, which the API server copies.
const handMade = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  managedFields:
  - manager: stoke
    operation: Apply
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:readinessProbe": {"f:httpGet": {"f:port": {}}}}}}}}}
  - manager: kubectl-patch
    operation: Update
    fieldsType: FieldsV1
    fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:serviceAccount": {}, "f:serviceAccountName": {}, "f:containers": {"k:{\"name\":\"web\"}": {
      "f:env": {".": {}, "k:{\"name\":\"X\"}": {".": {}, "f:name": {}, "f:value": {}}}, "f:readinessProbe": {"f:exec": {".": {}, "f:command": {}}}}}}}}}
spec: {template: {spec: {serviceAccount: other, serviceAccountName: other, containers: [{name: web, env: [{name: X, value: "1"}], readinessProbe: {exec: {command: [x]}}}]}}}
`

const declared = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: web, readinessProbe: {httpGet: {port: 80}}}]}}}}`

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestForeign: an added list is taken away with its items, a service account with its
// copy, and a refusal of a probe is due to the handler that was added.
func TestForeign(t *testing.T) {
	current := parsed(t, handMade)
	added := Foreign(parsed(t, declared), current)
	const container = `.spec.template.spec.containers[name="web"]`
	items := added.Items()
	slices.Sort(items)
	if want := []string{container + ".env", container + ".readinessProbe.exec", ".spec.template.spec.serviceAccount", ".spec.template.spec.serviceAccountName"}; !slices.Equal(items, want) {
		t.Errorf("added are %q", items)
	}
	if all := added.Fields(); !slices.Contains(all, container+`.env[name="X"]`) || !slices.Contains(all, container+`.env[name="X"].value`) {
		t.Errorf("the item is not among %q", all)
	}
	for field, want := range map[string]bool{
		"spec.template.spec.containers[0].readinessProbe.httpGet": true, "spec.template.spec.containers[0].env[0].value": true,
		"spec.template.spec.containers[0].readinessProbe": true, "spec.selector": false, "spec.template.metadata.labels": false,
	} {
		err := apierrors.NewInvalid(current.GroupVersionKind().GroupKind(), "web", nil)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeForbidden, Field: field}}
		if got := added.Blocks(err); got != want {
			t.Errorf("a refusal of %s is due to what was added: %v", field, got)
		}
	}
	if still := added.StillIn(current, current); len(still) != 4 {
		t.Errorf("still there are %q", still)
	}
	if still := added.StillIn(current, parsed(t, declared)); len(still) != 0 {
		t.Errorf("still there are %q", still)
	}
}
