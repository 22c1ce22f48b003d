package object

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string // keys
		err  string
	}{
		"several":         {"# first\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n---\n# nothing\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b, namespace: a}\n", []string{"Namespace/a", "apps/Deployment/a/b"}, ""},
		"json":            {`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, []string{"ConfigMap/a"}, ""},
		"list":            {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n", []string{"ConfigMap/a", "Secret/b"}, ""},
		"windows":         {"apiVersion: v1\r\nkind: ConfigMap\r\nmetadata:\r\n  name: a\r\n", []string{"ConfigMap/a"}, ""},
		"nothing":         {"# only this\n", nil, ""},
		"bad line":        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\na: b\n c: d\n", []string{"ConfigMap/a"}, "document 2 (line 5): line 6"},
		"twice the key":   {"apiVersion: v1\nkind: ConfigMap\nkind: Secret\nmetadata: {name: a}\n", nil, `key "kind" already set`},
		"a text":          {"hello\n", nil, "it is not an object"},
		"no kind":         {"apiVersion: v1\nmetadata: {name: a}\n", nil, "it has no kind"},
		"no name":         {"apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", nil, "has no metadata.name"},
		"no metadata":     {"apiVersion: v1\nkind: ConfigMap\n", nil, "has no metadata"},
		"generated name":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}\n", nil, "generateName"},
		"name is number":  {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 5}\n", nil, "has to be a text"},
		"label is number": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {on: yes}}\n", nil, "put it in quotes"},
		"secret number":   {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {port: 5432}\n", nil, `stringData["port"] of the Secret is not a text`},
		"secret data":     {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {port: [1]}\n", nil, `data["port"] of the Secret is not a text`},
		"secret base64":   {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {port: canary!}\n", nil, `data["port"] of the Secret is not base64`},
		"secret no map":   {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: hello\n", nil, "stringData of the Secret is not a map"},
		"deep":            {strings.Repeat("[", 20000), nil, "document 1"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Parse([]byte(tt.text), "m.yaml")
			var keys []string
			for _, u := range objects {
				keys = append(keys, KeyOf(u).String())
			}
			if diff := cmp.Diff(tt.want, keys); diff != "" && tt.err == "" {
				t.Error(diff)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error shows a value: %v", err)
			}
			if tt.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: b}}]\n---\na: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := Parse(text, "f")
		if err != nil {
			return
		}
		for _, u := range objects {
			Clean(u)
			if _, err := Text(u.Object, "s"); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestKeys(t *testing.T) {
	for text, want := range map[string]string{
		"Namespace/a": "", "ConfigMap/n/a": "", "apps/Deployment/n/a": "", "scheduling.k8s.io/PriorityClass/a": "", "Secret/v1/v1": "", "x.io/thing/v1/a": "",
		// as states had them once
		"v1/Namespace/a": "Namespace/a", "v1/ConfigMap/n/a": "ConfigMap/n/a", "apps/v1/Deployment/n/a": "apps/Deployment/n/a", "v1/Secret/v1/v1": "Secret/v1/v1",
		"scheduling.k8s.io/v1/PriorityClass/a": "scheduling.k8s.io/PriorityClass/a", "policy/v1beta1/PodDisruptionBudget/n/a": "policy/PodDisruptionBudget/n/a",
	} {
		if want == "" {
			want = text
		}
		k, err := ParseKey(text)
		if err != nil || k.String() != want {
			t.Errorf("%s reads as %s, %v", text, k, err)
		}
	}
	for _, text := range []string{"", "a", "ConfigMap", "v1/ConfigMap", "v1/ConfigMap/a/b/c", "apps/Deployment", "v1//a", "ConfigMap//a"} {
		if k, err := ParseKey(text); err == nil {
			t.Errorf("%q reads as %s", text, k)
		}
	}
}

func TestClean(t *testing.T) {
	objects, err := Parse([]byte(`
apiVersion: v1
kind: Secret
metadata: {name: a, uid: x, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}, labels: null}
stringData: {b: hello}
data: {a: aGk=}
status: {x: 1}
`), "m")
	if err != nil {
		t.Fatal(err)
	}
	Clean(objects[0])
	want := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a", "annotations": map[string]any{}},
		"data": map[string]any{"a": "aGk=", "b": "aGVsbG8="},
	}
	if diff := cmp.Diff(want, objects[0].Object); diff != "" {
		t.Error(diff)
	}
}

func TestCleanLeavesAggregatedRules(t *testing.T) {
	u := parsed(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"},"aggregationRule":{"clusterRoleSelectors":[]},"rules":[]}`)
	if Clean(u); u.Object["rules"] != nil {
		t.Error("rules that a controller gathers are kept")
	}
	u = parsed(t, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a"},"rules":[]}`)
	if Clean(u); u.Object["rules"] == nil {
		t.Error("rules are lost")
	}
}

// live is an object with the fields that its managers own.
func live(t *testing.T, content string, owned ...string) *unstructured.Unstructured {
	t.Helper()
	u := parsed(t, content)
	var entries []any
	for i, f := range owned {
		entries = append(entries, map[string]any{"manager": string(rune('a' + i)), "operation": "Apply", "fieldsV1": decode(t, f)})
	}
	u.Object["metadata"].(map[string]any)["managedFields"] = entries
	return u
}

func parsed(t *testing.T, content string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: decode(t, content).(map[string]any)}
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(text, err)
	}
	return v
}

func TestProject(t *testing.T) {
	const head = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a"},"spec":`
	for name, tt := range map[string]struct {
		live, owned, others, want string
		result                    string
	}{
		"what others set is left out": {`{"a":1,"b":2}`, `{"f:spec":{"f:a":{}}}`, `{"f:spec":{"f:b":{}}}`, `{"a":1}`, `{"a":1}`},
		"what was changed shows":      {`{"a":5}`, `{}`, `{"f:spec":{"f:a":{}}}`, `{"a":1}`, `{"a":5}`},
		"what was removed shows":      {`{"b":5}`, `{}`, `{"f:spec":{"f:b":{}}}`, `{"a":1}`, `{}`},
		"items by their keys": {
			`{"c":[{"name":"side","image":"s"},{"name":"web","image":"w","pull":"Always"}]}`,
			`{"f:spec":{"f:c":{"k:{\"name\":\"web\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
			`{"f:spec":{"f:c":{"k:{\"name\":\"side\"}":{".":{},"f:name":{},"f:image":{}}}}}`,
			`{"c":[{"name":"web","image":"v"}]}`, `{"c":[{"name":"web","image":"w"}]}`,
		},
		"a key that the server adds": {
			`{"p":[{"port":80,"protocol":"UDP"},{"port":80,"protocol":"TCP","x":1}]}`,
			`{"f:spec":{"f:p":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:port":{}},"k:{\"port\":80,\"protocol\":\"UDP\"}":{"f:port":{}}}}}`, `{}`,
			`{"p":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"}]}`, `{"p":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"}]}`,
		},
		"a set":            {`{"s":["x","y","z"]}`, `{"f:spec":{"f:s":{"v:\"x\"":{}}}}`, `{"f:spec":{"f:s":{"v:\"y\"":{},"v:\"z\"":{}}}}`, `{"s":["x"]}`, `{"s":["x"]}`},
		"a list as one":    {`{"s":["x","y"]}`, `{"f:spec":{"f:s":{}}}`, `{}`, `{"s":["x"]}`, `{"s":["x","y"]}`},
		"a map as one":     {`{"s":{"x":"1","y":"2"}}`, `{"f:spec":{"f:s":{}}}`, `{}`, `{"s":{"x":"1"}}`, `{"s":{"x":"1","y":"2"}}`},
		"an empty map":     {`{"s":{}}`, `{"f:spec":{"f:s":{}}}`, `{}`, `{"s":{}}`, `{"s":{}}`},
		"filled by others": {`{"s":{"x":"1"}}`, `{}`, `{"f:spec":{"f:s":{"f:x":{}}}}`, `{"s":{}}`, `{"s":{}}`},
		"another type":     {`{"s":"text"}`, `{"f:spec":{"f:s":{}}}`, `{}`, `{"s":{"x":1}}`, `{"s":"text"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := Project(live(t, head+tt.live+"}", tt.owned, tt.others), parsed(t, head+tt.want+"}"))
			if diff := cmp.Diff(decode(t, tt.result), got["spec"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTextHidesSecrets(t *testing.T) {
	content := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"password": "Y2FuYXJ5"}}
	one, err := Text(content, "salt")
	if err != nil || strings.Contains(one, "Y2FuYXJ5") || !strings.Contains(one, "password: (sensitive)") {
		t.Fatal(one, err)
	}
	same, _ := Text(content, "salt")
	salted, _ := Text(content, "other")
	content["data"].(map[string]any)["password"] = "b3RoZXI="
	changed, _ := Text(content, "salt")
	if one != same || one == salted || one == changed {
		t.Error("versions cannot be told apart by their hashes")
	}
}

func TestVeil(t *testing.T) {
	secret := parsed(t, `{"apiVersion":"v1","kind":"Secret","data":{"a":"Y2FuYXJ5Cg==","b":"","c":"Y2FuYXJ5LWxvbmc="}}`)
	got := RedactSecret(secret, `refused: "canary-long", "Y2FuYXJ5Cg==" and canary`)
	if want := `refused: "(sensitive)", "(sensitive)" and (sensitive)`; got != want {
		t.Error(got)
	}
}

func TestHas(t *testing.T) {
	u := parsed(t, `{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"web","image":"x","ports":[{"containerPort":80,"protocol":"TCP"}]}]}}},
		"metadata":{"annotations":{"a.b/c":"1","a.b":"2"},"finalizers":["x","y]z"]},"data":{"nginx.conf":"x","nginx":"y"},"limits":{"nvidia.com/gpu":1}}`)
	for field, want := range map[string]bool{
		".data.nginx.conf": true, ".data.nginx": true, ".data.nginx.co": false, ".data.conf": false, ".limits.nvidia.com/gpu": true,
		".metadata.annotations.a.b/c": true, ".metadata.annotations.a.b": true, `.metadata.finalizers[="x"]`: true, `.metadata.finalizers[="y]z"]`: true, `.metadata.finalizers[="z"]`: false,
		".spec.replicas": true, ".spec.paused": false,
		`.spec.template.spec.containers[name="web"].image`:                                       true,
		`.spec.template.spec.containers[name="side"].image`:                                      false,
		`.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]`:      true,
		`.spec.template.spec.containers[name="web"].ports[containerPort=81,protocol="TCP"].name`: false,
	} {
		if got := HasField(u, field); got != want {
			t.Errorf("%s: %v", field, got)
		}
	}
}

func TestWaves(t *testing.T) {
	order := []schema.GroupKind{
		{Kind: "Namespace"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, {Group: rbac, Kind: "Role"}, {Kind: "ConfigMap"}, {Group: "apps", Kind: "Deployment"},
		{Group: "example.com", Kind: "Anything"}, {Group: "networking.k8s.io", Kind: "Ingress"}, {Group: admission, Kind: "ValidatingWebhookConfiguration"},
	}
	for i := 1; i < len(order); i++ {
		if Wave(order[i-1]) >= Wave(order[i]) {
			t.Errorf("%s comes before %s", order[i], order[i-1])
		}
	}
	for _, custom := range []schema.GroupKind{{Group: "example.com", Kind: "Namespace"}, {Group: "gateway.networking.k8s.io", Kind: "Ingress"}} {
		if Wave(custom) != Wave(order[5]) {
			t.Errorf("%s is not made with the custom resources", custom)
		}
	}
}

func TestOrigin(t *testing.T) {
	manifest := "# none\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"
	named := func(name string) func(*unstructured.Unstructured) bool {
		return func(u *unstructured.Unstructured) bool { return u.GetName() == name }
	}
	for name, want := range map[string]string{"a": "f, document 2 (line 3)", "b": "f, document 3 (line 7)", "c": ""} {
		if got := Origin([]byte(manifest), "f", named(name)); got != want {
			t.Errorf("%s comes from %q, want %q", name, got, want)
		}
	}
}

// A document that ends with ... may be followed by another one without a ---.
func TestDocumentsThatEnd(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n...\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n... # the end\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {text: \"...\"}\n...\n"
	all, err := Parse([]byte(text), "f")
	var names []string
	for _, u := range all {
		names = append(names, u.GetName())
	}
	if err != nil || strings.Join(names, " ") != "a b c" {
		t.Errorf("%v, %v", names, err)
	}
	if _, err := Parse([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n...\napiVersion: [\n"), "f"); err == nil || !strings.Contains(err.Error(), "line") {
		t.Errorf("a second document that is broken: %v", err)
	}
}
