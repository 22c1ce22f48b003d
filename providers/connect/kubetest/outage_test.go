package kubetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestOutages stops, kills, and pauses the API server of a cluster of its own.
func TestOutages(t *testing.T) {
	c := Start(t, Options{APIOnly: true})
	ns := c.Namespace(t)
	config := *c.Admin
	config.Timeout = 2 * time.Second
	client, err := kubernetes.NewForConfig(&config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	get := func() error {
		_, err := client.CoreV1().ConfigMaps(ns).Get(t.Context(), "kept", metav1.GetOptions{})
		return err
	}
	refused := func(t *testing.T) {
		t.Helper()
		if err := get(); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v, want a refused connection", err)
		}
	}
	there := func(t *testing.T) {
		t.Helper()
		// The first answer may come by a connection of before.
		c.Eventually(t, "the API server has what it had", func(context.Context) (bool, error) { err := get(); return err == nil, err })
	}
	t.Run("stopped", func(t *testing.T) {
		c.StopAPI(t)
		refused(t)
		c.StartAPI(t)
		there(t)
	})
	t.Run("killed", func(t *testing.T) {
		c.KillAPI(t)
		refused(t)
		c.StartAPI(t)
		there(t)
	})
	t.Run("out for a while", func(t *testing.T) {
		wait := c.Outage(t, 100*time.Millisecond)
		refused(t)
		wait()
		there(t)
	})
	t.Run("paused", func(t *testing.T) {
		resume := c.PauseAPI(t)
		if err := get(); !os.IsTimeout(err) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a timeout", err)
		}
		resume()
		there(t)
	})
}

// TestCrashIsNamed shows that a program that ends by itself is no reason to wait.
func TestCrashIsNamed(t *testing.T) {
	dir, err := binaries()
	if err != nil {
		refuse(t, err)
	}
	_, err = start(t.Context(), dir, t.TempDir(), Options{APIOnly: true, APIServer: []string{"--no-such-flag"}})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended") || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("got %v, want what kube-apiserver says", err)
	}
}

// TestNothingIsLeft shows that the end of a cluster is the end of its programs.
func TestNothingIsLeft(t *testing.T) {
	var c *Cluster
	t.Run("cluster", func(t *testing.T) { c = Start(t, Options{}) })
	if c == nil {
		t.Skip("no cluster was started")
	}
	for _, p := range c.processes() {
		if p.running() || syscall.Kill(p.pid, 0) == nil {
			t.Errorf("%s is still there", p.name)
		}
	}
	if _, err := os.Stat(filepath.Dir(c.Kubeconfig())); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cluster's files are still there: %v", err)
	}
}
