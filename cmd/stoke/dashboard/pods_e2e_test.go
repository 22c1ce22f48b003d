//go:build e2e && linux

package dashboard

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/providers/connect/podtest"
)

// trainingInPods has a run of a cluster that goes on until the test ends it, one that ends
// soon, and one that waits: another pod has the only GPU.
var trainingInPods = podtest.Digits + podtest.Experiment("digits", `
  wait = false

  hyperparameters = {
    learning_rate = 0.05
    batch_size    = 192
    epochs        = 1000000
  }
  coordinator {
    memory = "128Mi"
  }
  parameter_server {
    replicas = 1
    memory   = "128Mi"
  }
  worker {
    replicas = 3
    cpu      = "100m"
    memory   = "256Mi"
  }
  evaluation {
    every_steps = 50
  }
`) + podtest.Experiment("short", `
  hyperparameters = {
    learning_rate = 0.02
    epochs        = 3
  }
  coordinator {
    memory = "128Mi"
  }
  worker {
    replicas = 2
    cpu      = "100m"
    memory   = "256Mi"
  }
  evaluation {
    every_steps = 10
  }
`) + podtest.Experiment("queued", `
  wait = false

  coordinator {
    memory = "128Mi"
  }
  worker {
    replicas = 1
    gpus     = 1
    memory   = "256Mi"
  }
`)

// otherPod has the GPU, and belongs to no run.
const otherPod = `
apiVersion: v1
kind: Pod
metadata:
  name: notebook
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: notebook
    image: stoke.test/demo:1
    args: [say, hello]
    resources:
      requests: { cpu: 250m, memory: 64Mi }
      limits: { memory: 64Mi, nvidia.com/gpu: 1 }
`

// podsListed returns how often the API server has listed pods from etcd, and from its memory.
func podsListed(t *testing.T, c *podtest.Cluster) (stored, cached int) {
	t.Helper()
	for line := range strings.Lines(c.Kubectl(t, "", "get", "--raw", "/metrics")) {
		if !strings.HasPrefix(line, "apiserver_storage_list_total{") || !strings.Contains(line, `resource="pods"`) {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if strings.Contains(line, `storage="watchcache"`) {
			cached += n
		} else {
			stored += n
		}
	}
	return stored, cached
}

// TestBrowserRealPods shows runs that train in the pods of a real control plane, in a real
// browser. With -pictures it makes two of the documentation.
func TestBrowserRealPods(t *testing.T) {
	c := podtest.Start(t, podtest.Options{Nodes: 2})
	trainer := programtest.Path(t, "stoke-trainer")
	c.LoadTrainer(t, trainer)
	c.Nodes[1].Offer(t, "nvidia.com/gpu", 1)
	c.Kubectl(t, otherPod, "apply", "-f", "-")
	c.Kubectl(t, "", "wait", "--for=condition=Ready", "--timeout=5m", "pod/notebook")

	l := newLab(t, c.Configuration(trainer, "lab", "restricted")+trainingInPods)
	b := l.b
	l.apply()
	l.await("train_experiment.digits", "running")
	l.await("train_experiment.short", "succeeded")
	l.open()
	b.until("the runs are listed", `document.querySelectorAll("#runs tbody tr").length === 3 && ["running", "succeeded"].every((p) => [...document.querySelectorAll("#runs .phase")].some((n) => n.textContent === p))`)
	l.changes("they go on", `[...document.querySelectorAll("#runs td")].map((c) => c.textContent)`)
	l.run("train_experiment.digits", nil)
	b.until("the ledger of the coordinator", `document.querySelectorAll("#ledger-epochs tr").length > 0`)
	b.until("each worker has a node", `[...document.querySelectorAll("#roles td[data-live=node]")].filter((c) => /^node-[12]$/.test(c.textContent)).length === 5`)
	l.workers(5)
	b.until("bytes of the network", `[...document.querySelectorAll(".card [data-live=received_per_second]")].filter((c) => /[1-9].*B.s/.test(c.textContent)).length >= 5`)
	b.until("the addresses of pods", `[...document.querySelectorAll(".card [data-live=address]")].filter((c) => !c.hidden && c.textContent.startsWith("10.244.")).length >= 5`)
	b.until("the curves of the coordinator", `[...document.querySelectorAll(".card")].some((c) => c.dataset.role === "coordinator-0" && c.dataset.run.includes("digits") && [...c.querySelectorAll("svg .stroke")].some((p) => (p.getAttribute("d") ?? "").length > 30))`)
	b.picture("dashboard-workers")
	l.worker("train_experiment.digits", "coordinator-0")
	l.worker("train_experiment.digits", "worker-1")
	b.until("its address", `document.querySelector("[data-live=address]").textContent.startsWith("10.244.")`)
	l.compared("train_experiment.digits", "train_experiment.short")
	l.drift("train_experiment.short")
	l.download("train_experiment.short")

	b.do(chromedp.Navigate(l.base + "/cluster"))
	b.until("two nodes, and who uses them", `document.querySelectorAll(".place .users").length === 2 && document.querySelector(".place tbody").textContent.includes("digits") &&
		document.querySelector(".place tbody").textContent.includes("1 other pod: CPU 0.25")`)
	b.until("a run waits, with the scheduler's reason", `[...document.querySelectorAll(".place tbody tr")].some((r) => r.textContent.includes("queued") && r.textContent.includes("Insufficient nvidia.com/gpu"))`)
	b.fits("cluster")
	b.picture("dashboard-cluster")
	stored, cached := podsListed(t, c)
	for _, node := range []string{"node-1", "node-2"} {
		c.Kubectl(t, "", "cordon", node)
		b.until("a change of "+node, `[...document.querySelectorAll(".place .phase")].filter((p) => p.textContent === "cordoned").length === 1`)
		c.Kubectl(t, "", "uncordon", node)
		b.until("another change of "+node, `[...document.querySelectorAll(".place .phase")].every((p) => p.textContent === "ready")`)
	}
	if from, memory := podsListed(t, c); from != stored || memory <= cached {
		t.Errorf("while the page was open, the API server listed pods %d times from etcd, and %d times from its memory", from-stored, memory-cached)
	}
	b.axe("cluster of real pods")
	l.form()
	b.sound("real pods")
	l.restart("train_experiment.digits")
}
