package live

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestSelectMark: resources that ask while a list is read share the next one, and many
// resources share one list of all objects that were not in a list before.
func TestSelectMark(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for others, want := range map[int]string{1: Mark + "=id-01", 3: Mark + " in (id-01,id-02,id-03)", fewMarks: Mark + "," + Mark + " notin (id-00)"} {
		c := New(nil)
		first, done := selectMark(t.Context(), c, kind, "id-00")
		if first != Mark+"=id-00" {
			t.Fatalf("the first list is of %s", first)
		}
		if again, _ := selectMark(t.Context(), c, kind, "id-00"); again != first {
			t.Errorf("a second object of the resource is in the list of %s", again)
		}
		labels, all := make(chan string, others), sync.WaitGroup{}
		for i := range others {
			all.Go(func() {
				label, done := selectMark(t.Context(), c, kind, fmt.Sprintf("id-%02d", i+1))
				defer done()
				labels <- label
			})
		}
		for waiting := 0; waiting < others; {
			c.mu.Lock()
			waiting = len(c.marks[kind].waiting)
			c.mu.Unlock()
		}
		done()
		all.Wait()
		close(labels)
		got := map[string]bool{}
		for label := range labels {
			got[label] = true
		}
		if len(got) != 1 || !got[want] {
			t.Errorf("%d resources are in the lists of %v, want %s", others, got, want)
		}
		if last, _ := selectMark(t.Context(), c, kind, "id-99"); others == fewMarks && last != want {
			t.Errorf("one resource more is in the list of %s", last)
		}
	}
	if label, _ := selectMark(t.Context(), New(nil), kind, ""); label != Mark {
		t.Errorf("a resource without a mark is in the list of %s", label)
	}
}

// TestFirstListGathers: resources that are read at the same time, or each a moment after
// another, share the first list, and more than a few of them share the list of all objects.
func TestFirstListGathers(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for resources, want := range map[int]string{1: Mark + "=id-0", 3: Mark + " in (id-0,id-1,id-2)", fewMarks + 1: Mark} {
		synctest.Test(t, func(t *testing.T) {
			c, all := New(nil), sync.WaitGroup{}
			for i := range resources {
				all.Go(func() {
					time.Sleep(time.Duration(i) * gathering * 2 / 3)
					label, done := selectMark(t.Context(), c, kind, fmt.Sprintf("id-%d", i))
					defer done()
					if label != want {
						t.Errorf("%d resources: one is in the list of %s, want %s", resources, label, want)
					}
				})
			}
			all.Wait()
		})
	}
}
