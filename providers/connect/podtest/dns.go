//go:build e2e && linux

package podtest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"

	discovery "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"golang.org/x/net/dns/dnsmessage"
)

// zone is where Services are.
const zone = ".svc.cluster.local."

// nameServer is the cluster's DNS: it knows the names of Services, and of the
// pods that have a host name in one (DNS-Based Service Discovery, version 1.1,
// for headless Services). It asks the API server for each answer.
type nameServer struct {
	socket net.PacketConn
	client kubernetes.Interface
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newNameServer(socket net.PacketConn, client kubernetes.Interface) *nameServer {
	s := &nameServer{socket: socket, client: client}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.all.Go(s.run)
	return s
}

func (s *nameServer) close() {
	s.cancel()
	_ = s.socket.Close()
	s.all.Wait()
}

func (s *nameServer) run() {
	buffer := make([]byte, 1<<16)
	for {
		size, from, err := s.socket.ReadFrom(buffer)
		if err != nil {
			return // it is closed
		}
		var question dnsmessage.Message
		if question.Unpack(buffer[:size]) != nil || len(question.Questions) != 1 {
			continue
		}
		s.all.Go(func() {
			answer := s.answer(question)
			if packed, err := answer.Pack(); err == nil {
				_, _ = s.socket.WriteTo(packed, from) // who hears nothing asks again
			}
		})
	}
}

// answer answers a question. That of an address that a name does not have, IPv6
// above all, is answered by nothing, so that the resolver knows the name is there.
func (s *nameServer) answer(question dnsmessage.Message) dnsmessage.Message {
	q := question.Questions[0]
	answer := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: question.ID, Response: true, Authoritative: true, RecursionDesired: question.RecursionDesired, RecursionAvailable: true},
		Questions: question.Questions,
	}
	addresses, err := s.resolve(strings.ToLower(q.Name.String()))
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		answer.RCode = dnsmessage.RCodeServerFailure
	case len(addresses) == 0:
		answer.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA || q.Type == dnsmessage.TypeALL:
		const most = 25 // what fits into 512 bytes
		for _, a := range addresses[:min(most, len(addresses))] {
			answer.Answers = append(answer.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 0}, Body: &dnsmessage.AResource{A: a.As4()},
			})
		}
	}
	return answer
}

// resolve finds SERVICE.NAMESPACE or HOST.SERVICE.NAMESPACE.
func (s *nameServer) resolve(name string) ([]netip.Addr, error) {
	name, ours := strings.CutSuffix(name, zone)
	labels := strings.Split(name, ".")
	if !ours || len(labels) < 2 || len(labels) > 3 {
		return nil, nil
	}
	host := ""
	if len(labels) == 3 {
		host, labels = labels[0], labels[1:]
	}
	service, namespace := labels[0], labels[1]
	object, err := s.client.CoreV1().Services(namespace).Get(s.ctx, service, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if address, err := netip.ParseAddr(object.Spec.ClusterIP); err == nil && host == "" {
		return []netip.Addr{address}, nil // others are headless
	}
	slices, err := s.client.DiscoveryV1().EndpointSlices(namespace).List(s.ctx, metav1.ListOptions{LabelSelector: discovery.LabelServiceName + "=" + service})
	if err != nil {
		return nil, err
	}
	var addresses []netip.Addr
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready != nil && !*e.Conditions.Ready || host != "" && (e.Hostname == nil || *e.Hostname != host) {
				continue
			}
			for _, text := range e.Addresses {
				if a, err := netip.ParseAddr(text); err == nil && a.Is4() {
					addresses = append(addresses, a)
				}
			}
		}
	}
	return addresses, nil
}
