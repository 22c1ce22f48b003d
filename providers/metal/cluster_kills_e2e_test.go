//go:build e2e && linux

package metal_test

import (
	"bufio"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// killsPerCluster is how often stoke is killed while it makes one cluster.
const killsPerCluster = 5

// TestClusterKillsRealKubeadm kills stoke while it makes clusters of three
// machines, as often as STOKE_KILLS says: the apply after that finishes the job.
// Nothing joins twice, no cluster is made anew, and no token stays alive.
func TestClusterKillsRealKubeadm(t *testing.T) {
	wanted, err := strconv.Atoi(os.Getenv("STOKE_KILLS"))
	if err != nil {
		t.Skip("STOKE_KILLS is no number: run make e2e-metal-cluster-kills")
	}
	s := newClusterSuite(t, false, "head", "worker1", "worker2")
	s.declare()
	kills, inside := 0, 0
	for kills < wanted {
		seen := map[string]string{}
		for i := 0; i < killsPerCluster && kills < wanted; i++ {
			killed, within := s.kill(i)
			if killed {
				kills++
			}
			if within {
				inside++
			}
			s.same(seen)
		}
		s.apply()
		s.same(seen)
		s.settled()
		s.ready("head", "worker1", "worker2")
		if tokens := s.machines[0].Exec("kubeadm", "token", "list"); strings.TrimSpace(tokens) != "" {
			t.Errorf("tokens are alive:\n%s", tokens)
		}
		s.ok("destroy", "-auto-approve")
		s.step("a cluster is made and destroyed")
	}
	t.Logf("%d kills, %d of them while kubeadm init or join ran", kills, inside)
	if inside*3 < kills {
		t.Errorf("%d of %d kills came while kubeadm init or join ran, which is too few to tell", inside, kills)
	}
}

// kill starts an apply and kills it: the first time once kubeadm init has begun,
// the second time once a join has, and else at any moment. It tells whether it
// was not too late, and whether kubeadm ran.
func (s *clusterSuite) kill(round int) (killed, inside bool) {
	s.t.Helper()
	awaited := map[int]string{0: "kubeadm init", 1: "kubeadm join"}[round%killsPerCluster]
	cmd := s.command("apply", "-auto-approve")
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	begun := make(chan bool, 1)
	running := map[string]bool{} // resources whose kubeadm runs
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			address, what, _ := strings.Cut(strings.TrimSpace(lines.Text()), ": ")
			if strings.HasPrefix(what, "kubeadm init") || strings.HasPrefix(what, "kubeadm join") {
				running[address] = true
			} else if strings.HasPrefix(what, "waiting for") || strings.HasPrefix(what, "Creation complete") || strings.HasPrefix(what, "node ") {
				delete(running, address)
			}
			if awaited != "" && strings.HasPrefix(what, awaited) {
				select {
				case begun <- true:
				default:
				}
			}
		}
	}()
	go func() {
		if awaited != "" {
			select {
			case <-begun:
				time.Sleep(rand.N(6 * time.Second))
			case <-time.After(2 * time.Minute):
			}
		} else {
			time.Sleep(rand.N(40 * time.Second))
		}
		_ = cmd.Process.Kill() // it may have ended
	}()
	err := cmd.Wait()
	write.Close()
	<-done
	killed = err != nil && !cmd.ProcessState.Exited()
	return killed, killed && len(running) > 0
}

// same fails where a cluster or a node is another one than before: they are told
// apart by the identifiers that the API gives them. An API that does not answer
// says nothing.
func (s *clusterSuite) same(seen map[string]string) {
	s.t.Helper()
	out, err := s.machines[0].Try("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--request-timeout=5s", "get", "namespace/kube-system", "-o", "jsonpath=cluster {.metadata.uid}")
	if err != nil {
		return
	}
	nodes, err := s.machines[0].Try("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "--request-timeout=5s", "get", "nodes", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
	if err != nil {
		return
	}
	now := map[string]string{}
	for line := range strings.Lines(out + "\n" + nodes) {
		if name, uid, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			now[name] = uid
		}
	}
	for name, uid := range seen {
		if now[name] != uid {
			s.t.Errorf("%s was %s, and is %q", name, uid, now[name])
		}
	}
	maps.Copy(seen, now)
}
