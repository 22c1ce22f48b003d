package metal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// course is the decision about a control plane's machine.
type course string

const (
	courseBegin  course = "begin"  // kubeadm init
	courseFinish course = "finish" // repeat init's phases: it was cut off
	courseKeep   course = "keep"   // it is a cluster: change what differs
)

// damagedError: stoke must not do anything on a machine by itself.
type damagedError struct{ why string }

func (e *damagedError) Error() string { return e.why }

// course decides by what the machine shows and what the record says of its past.
//
// Nothing here may ever lose a cluster. A cluster could be lost by a reset, which
// only destroying does, by an init that makes a new authority in place of an old
// one, or by an etcd that begins without its data. So:
//
//   - init is for a machine that has nothing of a cluster.
//   - Where our own init began, by a record that was written when the machine had
//     nothing of a cluster, its phases are repeated: each keeps the certificates and
//     the data that are there. That the API server was healthy may not be noted: a
//     stoke that was killed between its first answer and the note has left none, and
//     the cluster may have been used for weeks since.
//   - Where it is noted, and the data of etcd are not there, nothing is done: they may
//     lie on a disk that is not mounted.
//   - Once init has ended (by the record, or because the state knows the cluster)
//     only what differs is changed, and if the control plane is gone or has another
//     authority nothing is.
//
// known reports whether the state has the cluster's id.
func decide(is kubeadm.Facts, n notes, known bool, machine string) (course, error) {
	switch {
	case n.ending:
		return "", &damagedError{fmt.Sprintf("destroying the cluster on %s was cut off; destroy it to the end first (stoke apply -replace makes a new one)", machine)}
	case is.Role == kubeadm.Worker:
		return "", &damagedError{fmt.Sprintf("%s is a node of a cluster already, as %s of %s; take it out there first", machine, is.NodeName, is.Server)}
	case n.whole != "" || known:
		return courseOfWhole(is, n, machine)
	case n.healthy && !is.Etcd:
		return "", &damagedError{fmt.Sprintf("the API server of %s was healthy, and the data of etcd are missing now: "+
			"mount their disk or restore them from a backup, or destroy the cluster", machine)}
	case n.begun && is.Etcd && is.CAHash == "":
		return "", &damagedError{fmt.Sprintf("%s has data of etcd and no authority (/etc/kubernetes/pki/ca.crt): restore that file and its key from a backup, or destroy the cluster", machine)}
	case is.Role == kubeadm.NoRole && len(is.Left) == 0 && !is.Etcd:
		return courseBegin, nil
	case n.begun:
		return courseFinish, nil
	}
	there := is.Left
	if is.Role != kubeadm.NoRole {
		there = []string{"a control plane with the authority " + is.CAHash}
	}
	return "", &damagedError{fmt.Sprintf("%s has parts of a foreign cluster, and nothing of it was touched: %s\nIf "+
		"it is not needed, run there: kubeadm reset", machine, strings.Join(slices.Compact(there), "\n  "))}
}

func courseOfWhole(is kubeadm.Facts, n notes, machine string) (course, error) {
	const again = "\nRestore it from a backup of /etc/kubernetes and etcd. If it is gone for good, a new one is made by: stoke apply -replace=ADDRESS"
	switch {
	case is.Role == kubeadm.NoRole || !is.Etcd || is.CAHash == "":
		return "", &damagedError{fmt.Sprintf("the cluster is no longer on %s, and stoke does not make another one in "+
			"its place: %s%s", machine, missing(is), again)}
	case n.whole != "" && n.whole != is.CAHash:
		return "", &damagedError{fmt.Sprintf("%s is the control plane of another cluster now: its authority is %s, "+
			"and the authority of this one was %s%s", machine, is.CAHash, n.whole, again)}
	}
	return courseKeep, nil
}

// missing returns the missing part of a control plane.
func missing(is kubeadm.Facts) string {
	var all []string
	for what, lacks := range map[string]bool{
		"static pod of the API server and no admin.conf": is.Role == kubeadm.NoRole, "data of etcd": !is.Etcd, "certificate of the authority": is.CAHash == "",
	} {
		if lacks {
			all = append(all, what)
		}
	}
	slices.Sort(all)
	return "it has no " + strings.Join(all, ", no ")
}
