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

// killMoments are the moments of the applies of one cluster at which stoke is
// killed: once a line of its progress has these words, and "" for any line.
var killMoments = []string{"", "kubeadm init", "", "metal_node.", "kubeadm join", "kubeadm join", ""}

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
		for _, moment := range killMoments {
			killed, within := s.kill(moment)
			s.same(seen)
			if !killed {
				break // nothing is left to do
			}
			kills++
			if within {
				inside++
			}
		}
		s.apply()
		s.same(seen)
		s.settled()
		s.ready("head", "worker1", "worker2")
		if tokens := s.machines[0].Exec("kubeadm", "token", "list"); strings.TrimSpace(tokens) != "" {
			t.Errorf("tokens are alive:\n%s", tokens)
		}
		s.noSecrets()
		s.ok("destroy", "-auto-approve")
		s.step("the cluster was finished, and is destroyed")
	}
	t.Logf("%d kills, %d of them while kubeadm init or join ran", kills, inside)
	if inside*3 < kills {
		t.Errorf("%d of %d kills came while kubeadm init or join ran, which is too few to tell", inside, kills)
	}
}

// kill starts an apply and kills it at this moment, or a few seconds after it. It
// tells whether it was not too late, and whether kubeadm ran.
func (s *clusterSuite) kill(moment string) (killed, inside bool) {
	s.t.Helper()
	line, pause := 1, rand.N(6*time.Second)
	switch moment {
	case "": // as often early as late, however long the apply is
		line, pause = 1<<rand.N(7), rand.N(time.Second)
	case "kubeadm join": // which takes less time than init
		pause = rand.N(3 * time.Second)
	}
	cmd := s.command("apply", "-auto-approve")
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	running := map[string]bool{} // resources whose kubeadm runs
	last, done := "", make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			last = strings.TrimSpace(lines.Text())
			address, what, _ := strings.Cut(last, ": ")
			switch {
			case strings.HasPrefix(what, "kubeadm init"), strings.HasPrefix(what, "kubeadm join"):
				running[address] = true
			case strings.HasPrefix(what, "waiting for"), strings.HasPrefix(what, "Creation complete"), strings.HasPrefix(what, "node "):
				delete(running, address)
			}
			if !strings.HasPrefix(address, "metal_") || !strings.Contains(last, moment) { // the plan is no moment
				continue
			}
			if line--; line == 0 {
				time.AfterFunc(pause, func() { _ = cmd.Process.Kill() }) // it may have ended
			}
		}
	}()
	err := cmd.Wait()
	write.Close()
	<-done
	killed = err != nil && !cmd.ProcessState.Exited()
	if killed {
		s.step("killed at " + last)
	}
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

// cutOff: stoke is killed while kubeadm join runs, which goes on and comes to its
// end. The next apply finishes the node, and ends the token.
func (s *clusterSuite) cutOff(t *testing.T) {
	here, worker := s.on(t), s.machines[2]
	s.away[worker.Name] = true
	here.declare()
	here.apply()
	s.away[worker.Name] = false
	here.declare()
	tokens := func() string { return strings.TrimSpace(s.machines[0].Exec("kubeadm", "token", "list")) }

	// Something that came since the plan has the kubelet's port.
	here.ok("plan", "-out=refused")
	worker.Script(`setsid perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(LocalPort => 10250, Listen => 1) or die; sleep 600' >/dev/null 2>&1 & echo $! >/run/has-the-port`)
	here.until("the port is taken", func() bool { _, err := worker.Try("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/10250"); return err == nil })
	out, status := here.run("apply", "refused")
	worker.Script(`kill "$(cat /run/has-the-port)"`)
	if here.has(out, "Port-10250"); status == 0 || tokens() != "" {
		t.Errorf("after a join that failed: exit status %d, tokens %s", status, tokens())
	}
	here.step("a join that fails leaves no token")

	cmd := here.command("apply", "-auto-approve")
	read, write := io.Pipe()
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			if strings.Contains(lines.Text(), "kubeadm join") {
				_ = cmd.Process.Kill()
			}
		}
	}()
	err := cmd.Wait()
	write.Close()
	<-ended
	if err == nil {
		t.Fatal("stoke was not killed")
	}
	here.until("the node is ready without stoke", func() bool {
		return here.field("node/"+worker.Name, `.status.conditions[?(@.type=="Ready")].status`) == "True"
	})
	uid := here.field("node/"+worker.Name, ".metadata.uid")
	if tokens() == "" {
		t.Error("there is no token that the next apply would have to end")
	}
	here.apply()
	here.settled()
	if alive := tokens(); alive != "" {
		t.Errorf("a token is alive:\n%s", alive)
	}
	if now := here.field("node/"+worker.Name, ".metadata.uid"); now != uid {
		t.Error("the node joined twice")
	}
	here.step("a join that was cut off is finished")
}
