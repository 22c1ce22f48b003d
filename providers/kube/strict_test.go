package kube

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/kube/schema"
)

// strict compares what schemas say of objects with what an API server says to a
// strict dry run.
type strict struct {
	*world
	cluster *live.Cluster
	minor   string
	judge   *judge
}

func newStrict(t *testing.T) *strict {
	t.Helper()
	w := newWorld(t)
	var pool kubernetes.Pool
	t.Cleanup(pool.Close)
	client, err := pool.Get(t.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: w.config}}})
	if err != nil {
		t.Fatal(err)
	}
	return &strict{w, live.New(client), w.cluster.Version, &judge{library: new(schema.Library), customs: map[gvk.GroupVersionKind][]schema.Custom{}}}
}

// ours is what the schemas find; "" for nothing.
func (s *strict) ours(u *unstructured.Unstructured) string {
	return s.judge.judgeObject(u, []string{s.minor}, true).wrong
}

// server is what the API server says to a dry run; "" where it takes the object.
func (s *strict) server(u *unstructured.Unstructured) string {
	s.t.Helper()
	if _, err := s.cluster.Apply(s.t.Context(), u, true, true); err != nil {
		return message(err)
	}
	return ""
}

// kinds makes a CRD, and its kinds known to both.
func (s *strict) kinds(crd *unstructured.Unstructured) {
	s.t.Helper()
	text, err := crd.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "crd.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.kubectl("apply", "-f", file)
	s.kubectl("wait", "--for=condition=Established", "--timeout=120s", "crd/"+crd.GetName())
	s.t.Cleanup(func() { s.kubectl("delete", "crd", crd.GetName(), "--wait=false") })
	customs, err := schema.Customs(crd.Object)
	if err != nil {
		s.t.Fatal(err)
	}
	s.judge.add([]*unstructured.Unstructured{crd})
	for _, c := range customs { // discovery may be some seconds behind
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			s.cluster.Rediscover()
			if _, _, err := s.cluster.Mapping(c.GroupVersionKind); err == nil {
				break
			}
		}
	}
}

// parse reads documents as a manifest's, in the test's namespace.
func (s *strict) parse(text, from string) []*unstructured.Unstructured {
	s.t.Helper()
	objects, err := object.Parse([]byte(strings.ReplaceAll(text, "NS", s.ns)), from)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, text)
	}
	for _, u := range objects {
		object.Clean(u)
		m, err := s.judge.library.Minor(s.minor)
		if err != nil {
			s.t.Fatal(err)
		}
		k, known := m.Kind(u.GroupVersionKind())
		customs := s.judge.customs[u.GroupVersionKind()]
		if u.GetNamespace() == "" && (known && k.Namespaced || len(customs) > 0 && customs[0].Namespaced) {
			u.SetNamespace(s.ns)
		}
	}
	return objects
}

// broken are documents that no API server takes. Those that only it can tell are
// so: the schemas call them right, and the plan says that they are checked at apply.
var broken = []struct {
	document string
	apply    bool
}{
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}", apply: true},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{image: x}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, imgae: x}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x}, {name: a, image: y}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, ports: [{containerPort: http}]}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, ports: [{}]}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, env: [{name: A, value: 1}]}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, env: [{value: a}]}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, tty: yes please}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, command: sleep}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, resources: {limits: {memory: lots}}}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, resources: {limits: {memory: true}}}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, volumeMounts: [{name: v}]}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: {name: a, image: x}}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, livenessProbe: {httpGet: {path: /}}}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {replicas: 2, containers: [{name: a, image: x}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, imagePullPolicy: Sometimes}]}}", apply: true},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: A_b}, spec: {containers: [{name: a, image: x}]}}", apply: true},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: x, volumeMounts: [{name: v, mountPath: /v}]}]}}", apply: true},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a, lables: {a: b}}, spec: {containers: [{name: a, image: x}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {tolerations: [{tolerationSeconds: soon}], containers: [{name: a, image: x}]}}"},
	{document: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}], containers: [{name: a, image: x}]}}"},
	{document: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}}}"},
	{document: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}}}"},
	{document: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}"},
	{document: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: \"2\", selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}}}"},
	{document: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3000000000, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}}}"},
	{document: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: a, image: x}]}}}}", apply: true},
	{document: "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, serviceNam: a, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: x}]}}}}"},
	{document: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {containers: [{name: a, image: x}]}}}}", apply: true},
	{document: "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: x}]}}}}}}"},
	{document: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{targetPort: 80}]}}"},
	{document: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, targetPort: {a: b}}]}}"},
	{document: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}, {port: 80}]}}"},
	{document: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}, {port: 81}]}}", apply: true},
	{document: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {port: 80}}"},
	{document: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}"},
	{document: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: {b: c}}}"},
	{document: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, binaryData: {a: \"?\"}}"},
	{document: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {\"a b\": c}}", apply: true},
	{document: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, dat: {a: b}}"},
	{document: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: ReadWriteOnce, resources: {requests: {storage: 1Gi}}}}"},
	{document: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1 Gi}}}}"},
	{document: "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a}, rules: [{apiGroups: [\"\"], resources: [pods]}]}"},
	{document: "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, subjects: []}"},
	{document: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {rules: [{http: {paths: [{path: /, backend: {service: {name: a, port: {number: 80}}}}]}}]}}"},
	{document: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {serviceName: a, servicePort: 80}}]}}]}}"},
	{document: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}, ingress: {from: []}}}"},
	{document: "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {scaleTargetRef: {kind: Deployment, name: a}}}"},
	{document: "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: [1]}}"},
	{document: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS-x}, value: high}"},
	{document: "{apiVersion: NS.example.com/v1, kind: Shape, metadata: {name: a}, spec: {}}"},
	{document: "{apiVersion: NS.example.com/v1, kind: Shape, metadata: {name: a}, spec: {sides: 2}}"},
	{document: "{apiVersion: NS.example.com/v1, kind: Shape, metadata: {name: a}, spec: {sides: three}}"},
	{document: "{apiVersion: NS.example.com/v1, kind: Shape, metadata: {name: a}, spec: {sides: 3, color: green}}"},
	{document: "{apiVersion: NS.example.com/v1, kind: Shape, metadata: {name: a}, spec: {sides: 3, colour: red}}"},
}

// TestStrictVerdicts: what the schemas refuse, the API server's strict dry run does,
// and the other way round but for what the table leaves to the apply.
func TestStrictVerdicts(t *testing.T) {
	s := newStrict(t)
	s.kinds(s.parse(shape, "crd")[0])
	told := 0
	for _, c := range broken {
		u := s.parse(c.document, "yaml")[0]
		ours, server := s.ours(u.DeepCopy()), s.server(u)
		switch {
		case server == "":
			t.Errorf("the server takes %s\nwe say %q", c.document, ours)
		case (ours == "") != c.apply:
			t.Errorf("%s\nthe server says %q\nwe say %q", c.document, server, ours)
		}
		if ours != "" {
			told++
		}
	}
	if told < 30 {
		t.Errorf("only %d documents are refused without a server", told)
	}
}

// another is a CRD beside the one that is there, or any other object as it is.
func (s *strict) another(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u.GetKind() != "CustomResourceDefinition" {
		return u
	}
	text, err := u.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.parse(strings.ReplaceAll(string(text), s.ns, "other-"+s.ns), "crd")[0]
}

// rare are kinds and fields that the documents do not have.
const rare = `
{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Container, default: {cpu: 1}, max: {memory: 1Gi}}]}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {pods: 5}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [a]}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: rare}
spec:
  securityContext: {sysctls: [{name: net.ipv4.ping_group_range, value: "0 1"}], appArmorProfile: {type: RuntimeDefault}}
  hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]
  dnsConfig: {nameservers: [1.1.1.1], options: [{name: ndots, value: "2"}]}
  readinessGates: [{conditionType: example.com/a}]
  affinity:
    nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}
    podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}]}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]
  containers:
  - name: a
    image: x
    livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: a, value: b}]}}
    readinessProbe: {grpc: {port: 80}}
    startupProbe: {tcpSocket: {port: 80}}
    lifecycle: {preStop: {sleep: {seconds: 5}}}
    volumeDevices: [{name: block, devicePath: /dev/a}]
    resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]
    env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: b}}}]
  volumes:
  - {name: nfs, nfs: {server: a, path: /}}
  - {name: block, persistentVolumeClaim: {claimName: a}}
  - {name: iscsi, iscsi: {targetPortal: "10.0.0.1", iqn: "iqn.2001-04.com.example:a", lun: 1}}
  - {name: csi, csi: {driver: a.example.com, volumeAttributes: {a: b}}}
  - {name: own, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}
  - {name: down, downwardAPI: {items: [{path: cpu, resourceFieldRef: {containerName: a, resource: limits.cpu}}]}}
  - {name: gce, gcePersistentDisk: {pdName: a}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS-rare}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: a.example.com, volumeHandle: a}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}}
---
{apiVersion: v1, kind: Node, metadata: {name: NS-rare}, spec: {taints: [{key: a, effect: NoSchedule}]}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}, addressType: IPv4, endpoints: [{addresses: [10.1.2.3], conditions: {ready: true}, hints: {forZones: [{name: a}]}}], ports: [{port: 80, name: a}]}
---
{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: NS.example.com}, spec: {attachRequired: false, tokenRequests: [{audience: a}]}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS-a}, provisioner: a.example.com, allowedTopologies: [{matchLabelExpressions: [{key: a, values: [b]}]}]}
---
{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: a}, revision: 1, data: {a: b}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NS-a}, spec: {matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, variables: [{name: a, expression: "true"}], matchConditions: [{name: a, expression: "true"}], validations: [{expression: variables.a, message: a}], auditAnnotations: [{key: a, valueExpression: "'a'"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NS-a}, spec: {policyName: NS-a, validationActions: [Audit]}}
---
{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: NS-a}, spec: {priorityLevelConfiguration: {name: global-default}, matchingPrecedence: 9000, rules: [{subjects: [{kind: Group, group: {name: a}}], resourceRules: [{verbs: [get], apiGroups: ["*"], resources: ["*"], namespaces: ["*"]}], nonResourceRules: [{verbs: [get], nonResourceURLs: ["*"]}]}]}}
---
{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: NS-a}, spec: {type: Limited, limited: {nominalConcurrencyShares: 1, limitResponse: {type: Reject}}}}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NS.example.org}, spec: {group: NS.example.org, version: v1, groupPriorityMinimum: 100, versionPriority: 10, service: {name: a, namespace: a}, insecureSkipTLSVerify: true}}
---
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: NS-a}, spec: {selectors: [{cel: {expression: "device.driver == 'a.example.com'"}}]}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: a}, spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: NS-a, count: 1, allocationMode: ExactCount}}], config: [{requests: [gpu], opaque: {driver: a.example.com, parameters: {a: b}}}]}}}}
---
{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: v1}, spec: {scaleTargetRef: {kind: Deployment, name: a, apiVersion: apps/v1}, maxReplicas: 2}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: v2}, spec: {scaleTargetRef: {kind: Deployment, name: a, apiVersion: apps/v1}, maxReplicas: 2, metrics: [{type: Pods, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: 1}}}, {type: Object, object: {metric: {name: a}, describedObject: {kind: Service, name: a}, target: {type: Value, value: 1}}}, {type: ContainerResource, containerResource: {name: cpu, container: a, target: {type: Utilization, averageUtilization: 1}}}], behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 15}]}}}}
`

// mutation is one change of an object.
type mutation struct {
	what   string
	object *unstructured.Unstructured
}

// mutations are all objects that differ from one in one place below some fields: a
// field that is left out, one that is of another type, one that no kind has.
func mutations(u *unstructured.Unstructured) (all []mutation) {
	change := func(what string, path []any, to func(parent map[string]any, field string)) {
		c := u.DeepCopy()
		var at any = c.Object
		for _, step := range path[:len(path)-1] {
			switch step := step.(type) {
			case string:
				at = at.(map[string]any)[step]
			case int:
				at = at.([]any)[step]
			}
		}
		if parent, ok := at.(map[string]any); ok {
			to(parent, path[len(path)-1].(string))
			all = append(all, mutation{fmt.Sprintf("%s %s %v", u.GetKind(), what, path), c})
		}
	}
	var walk func(v any, path []any)
	walk = func(v any, path []any) {
		switch v := v.(type) {
		case map[string]any:
			change("with", append(slices.Clone(path), "zzz"), func(m map[string]any, f string) { m[f] = []any{map[string]any{}} })
			for _, f := range slices.Sorted(maps.Keys(v)) {
				if len(path) == 0 && (f == "apiVersion" || f == "kind") || len(path) == 1 && path[0] == "metadata" {
					continue
				}
				next := append(slices.Clone(path), f)
				change("without", next, func(m map[string]any, f string) { delete(m, f) })
				change("changed", next, func(m map[string]any, f string) { m[f] = otherwise(m[f]) })
				walk(v[f], next)
			}
		case []any:
			for i := range v {
				walk(v[i], append(slices.Clone(path), i))
			}
		}
	}
	walk(u.Object, nil)
	return all
}

// otherwise is a value of another type.
func otherwise(v any) any {
	switch v.(type) {
	case string:
		return true
	case []any, map[string]any, bool:
		return int64(7)
	}
	return []any{}
}

// untypedObject is how an API server refuses what schemas are to refuse: fields
// that there are not, and values of another type.
var untypedObject = regexp.MustCompile(`failed to create typed patch|strict decoding error|unknown field|cannot unmarshal|unrecognized type|must be of type|Invalid value: "(integer|string|boolean|array|object|number|null)"`)

// TestStrictMutations changes the documents that people use in one place after
// another. What the schemas refuse the server refuses; and what the server says
// about fields and types they find.
func TestStrictMutations(t *testing.T) {
	s := newStrict(t)
	var objects []*unstructured.Unstructured
	files, err := filepath.Glob(documents + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, pass := range []string{"kinds", "objects"} {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range s.parse(string(text), file) {
				switch {
				case pass == "kinds" && u.GetKind() == "CustomResourceDefinition":
					s.kinds(u)
				case pass == "objects":
					objects = append(objects, s.another(u))
				}
			}
		}
	}
	objects = append(objects, s.parse(rare, "rare")...)
	tried, found := 0, 0
	for _, u := range objects {
		if ours, server := s.ours(u.DeepCopy()), s.server(u); ours != "" || server != "" {
			t.Errorf("%s: we say %q, the server says %q", object.KeyOf(u).Title(), ours, server)
			continue
		}
		for _, m := range mutations(u) {
			tried++
			ours, server := s.ours(m.object.DeepCopy()), s.server(m.object)
			if ours != "" {
				found++
			}
			if ours != "" && server == "" {
				t.Errorf("%s: the server takes it, we say %q", m.what, ours)
			}
			if ours == "" && untypedObject.MatchString(server) && !strings.Contains(m.what, "openAPIV3Schema") { // of which the schemas do not tell all
				t.Errorf("%s: we say nothing, the server says %q", m.what, server)
			}
		}
	}
	if tried < 1000 || found < 500 {
		t.Errorf("%d changes tried, %d found", tried, found)
	}
	t.Logf("%d changes tried, %d found", tried, found)
}
