package pods

import (
	"errors"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers"
)

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: x, ports: [{name: http, containerPort: 8080}]}]
`

func pod(name, spec string) string {
	return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", labels: {app: web}}\nspec: " + spec + "\n"
}

// The pods of a set are those that its objects own, whatever labels others have.
func TestOwners(t *testing.T) {
	w := newWorld(t)
	s := w.apply(web+pod("stranger", "{containers: [{name: main, image: x}]}")+`
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: often}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store}
spec:
  serviceName: store
  selector: {matchLabels: {app: store}}
  template: {metadata: {labels: {app: store}}, spec: {containers: [{name: main, image: x}]}}
`, "apps/Deployment/web")
	names := w.run(s)
	if len(names) != 2 || !strings.HasPrefix(names[0], "web-") || !strings.HasPrefix(names[1], "web-") {
		t.Errorf("the pods of the deployment are %v", names)
	}
	if names := w.run(w.set("apps/StatefulSet/store", "Pod/stranger")); len(names) != 2 || names[0] != "store-0" || names[1] != "stranger" {
		t.Errorf("the pods are %v", names)
	}
	w.Kubectl(t, "", "create", "job", "-n", w.ns, "--from=cronjob/often", "now")
	cron := w.set("batch/CronJob/often")
	is := w.becomes(cron, "a job of the cron job runs", func(is providers.RunStatus) bool { return len(is.Roles) > 0 && is.Roles[0].Phase == Running })
	if is.Phase != Running || !strings.HasPrefix(is.Roles[len(is.Roles)-1].Name, "now-") && !strings.HasPrefix(is.Roles[0].Name, "now-") {
		t.Errorf("the cron job is %+v", is)
	}
	if _, err := w.set("apps/Deployment/other").Status(t.Context()); !errors.Is(err, providers.ErrNoRun) {
		t.Errorf("the status of what is not there: %v", err)
	}
}

// A status says why pods are not as they should be.
func TestReasons(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, spec   string
		do           func(name string)
		phase        string
		reason, also string
	}{
		{"fine", "{containers: [{name: main, image: x}]}", nil, Running, "", ""},
		{"large", "{containers: [{name: main, image: x, resources: {requests: {cpu: 900}}}]}", nil, Pending, "Insufficient cpu", ""},
		{"unbound", "{containers: [{name: main, image: x}], volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}", nil, Pending, "claim data (storage class none) has no volume yet", ""},
		{"image", "{containers: [{name: main, image: x}]}", func(name string) {
			w.kubelet.Wait(t, w.ns, name, "main", "ImagePullBackOff", `Back-off pulling image "x"`)
		}, NotReady, `image of container main cannot be pulled (ImagePullBackOff: Back-off pulling image "x")`, ""},
		{"crash", "{containers: [{name: main, image: x}]}", func(name string) {
			w.kubelet.Restart(t, w.ns, name, "main", 137, "OOMKilled")
			w.kubelet.End(t, w.ns, name, "main", 137, "OOMKilled")
			w.kubelet.Wait(t, w.ns, name, "main", "CrashLoopBackOff", "back-off 10s restarting failed container")
		}, Crashing, "CrashLoopBackOff of container main: it ended with OOMKilled (exit code 137)", ""},
		{"again", "{containers: [{name: main, image: x}]}", func(name string) {
			w.kubelet.Restart(t, w.ns, name, "main", 3, "Error")
		}, Running, "container main was started again: it had ended with exit code 3", "1"},
		{"over", "{restartPolicy: Never, containers: [{name: main, image: x}]}", func(name string) {
			w.kubelet.End(t, w.ns, name, "main", 137, "OOMKilled")
		}, Failed, "container main ended with OOMKilled (exit code 137)", ""},
		{"done", "{restartPolicy: Never, containers: [{name: main, image: x}]}", func(name string) {
			w.kubelet.End(t, w.ns, name, "main", 0, "Completed")
		}, Succeeded, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := *w
			w.T = t
			claim := "\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
			s := w.apply(pod(c.name, c.spec)+claim, "Pod/"+c.name)
			if c.do != nil {
				w.run(s)
				c.do(c.name)
			}
			is := w.becomes(s, "the pod is "+c.phase, func(is providers.RunStatus) bool {
				return is.Phase == c.phase && strings.Contains(is.Roles[0].Reason, c.reason)
			})
			if c.reason == "" && is.Roles[0].Reason != "" {
				t.Errorf("the reason is %q", is.Roles[0].Reason)
			}
			if c.also == "1" && is.Roles[0].Restarts != 1 {
				t.Errorf("%d restarts", is.Roles[0].Restarts)
			}
			if want := map[bool]string{true: "1/1", false: "0/1"}[c.phase == Running]; is.Roles[0].Ready != want {
				t.Errorf("ready is %s", is.Roles[0].Ready)
			}
		})
	}
}

// A Job ends, a Deployment that may make no pods says why, one of no pods is
// stopped.
func TestPhases(t *testing.T) {
	w := newWorld(t)
	one := w.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}
`, "batch/Job/train")
	pod := w.run(one)[0]
	w.kubelet.End(t, w.ns, pod, "main", 2, "Error")
	is := w.becomes(one, "the job fails", func(is providers.RunStatus) bool { return is.Phase == Failed })
	if is.Ended.IsZero() || !strings.Contains(is.Message, "BackoffLimit") && !strings.Contains(is.Message, "backoff limit") || is.Roles[0].Phase != Failed {
		t.Errorf("the failed job is %+v", is)
	}
	w.Kubectl(t, "", "create", "quota", "none", "-n", w.ns, "--hard=pods=0")
	s := w.apply(web, "apps/Deployment/web")
	is = w.becomes(s, "the deployment says why it has no pods", func(is providers.RunStatus) bool { return strings.Contains(is.Message, "exceeded quota") })
	if is.Phase != Pending || is.Progress != "0 of 2 pods ready" {
		t.Errorf("a deployment without pods is %+v", is)
	}
	w.Kubectl(t, "", "scale", "deployment", "web", "-n", w.ns, "--replicas=0")
	w.becomes(s, "the deployment is stopped", func(is providers.RunStatus) bool { return is.Phase == Stopped })
}
