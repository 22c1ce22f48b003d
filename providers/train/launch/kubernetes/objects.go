package kubernetes

import (
	"encoding/json"
	"fmt"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	scheduling "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/stokehq/stoke/runtime/certificate"
)

// configMap is the run itself: what it is, and whose.
func (l *layout) configMap(operation string) (*core.ConfigMap, error) {
	mapped := l.spec
	mapped.Dataset.Path = l.Dataset
	text, err := json.MarshalIndent(mapped, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write specification: %w", err)
	}
	placement, err := json.Marshal(l.Placement)
	if err != nil {
		return nil, fmt.Errorf("write placement: %w", err)
	}
	return &core.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: l.id, Namespace: l.Namespace, Labels: labels(l.id, ""),
			Annotations: map[string]string{operationAnnotation: operation, nameAnnotation: l.spec.Name},
		},
		Data: map[string]string{keySpec: string(text), keyPlacement: string(placement), keyHash: l.spec.Hash()},
	}, nil
}

// secret is what the roles know each other by.
func (l *layout) secret(token string) (*core.Secret, error) {
	made, err := certificate.Make(l.id)
	if err != nil {
		return nil, err
	}
	identity, err := made.PEM()
	if err != nil {
		return nil, err
	}
	return &core.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: l.id, Namespace: l.Namespace, Labels: labels(l.id, "")},
		Immutable:  new(true), Type: core.SecretTypeOpaque,
		Data: map[string][]byte{keyToken: []byte(token), keyCertificate: made.Pin.PEM(), keyIdentity: identity},
	}, nil
}

// service gives the pods names, ready or not.
func (l *layout) service() *core.Service {
	return &core.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: l.id, Namespace: l.Namespace, Labels: labels(l.id, "")},
		Spec: core.ServiceSpec{
			ClusterIP: core.ClusterIPNone, PublishNotReadyAddresses: true,
			Selector: map[string]string{runLabel: l.id},
			Ports:    []core.ServicePort{{Name: "roles", Port: int32(l.Port), TargetPort: intstr.FromInt32(int32(l.Port)), Protocol: core.ProtocolTCP}},
		},
	}
}

// policy lets nobody but the run's pods connect to them. What they connect to
// is left free: datasets and checkpoints may lie anywhere.
func (l *layout) policy() *networking.NetworkPolicy {
	var ports []networking.NetworkPolicyPort
	for _, number := range []int{l.Port, l.api()} {
		ports = append(ports, networking.NetworkPolicyPort{Port: new(intstr.FromInt(number)), Protocol: new(core.ProtocolTCP)})
	}
	if l.spec.HasProgram() {
		ports = nil // its ranks listen on ports of their own
	}
	return &networking.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: l.id, Namespace: l.Namespace, Labels: labels(l.id, "")},
		Spec: networking.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{runLabel: l.id}},
			PolicyTypes: []networking.PolicyType{networking.PolicyTypeIngress},
			Ingress: []networking.NetworkPolicyIngressRule{{
				From:  []networking.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{runLabel: l.id}}}},
				Ports: ports,
			}},
		},
	}
}

// claim keeps the coordinator's log.
func (l *layout) claim() *core.PersistentVolumeClaim {
	c := &core.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: l.id, Namespace: l.Namespace, Labels: labels(l.id, "")},
		Spec: core.PersistentVolumeClaimSpec{
			AccessModes: []core.PersistentVolumeAccessMode{core.ReadWriteOnce},
			Resources:   core.VolumeResourceRequirements{Requests: core.ResourceList{core.ResourceStorage: resource.MustParse(l.Storage)}},
		},
	}
	if l.StorageClass != "" {
		c.Spec.StorageClassName = &l.StorageClass
	}
	return c
}

// classes are the priority classes that the run's pods name.
func (l *layout) classes() []*scheduling.PriorityClass {
	named := make(map[string]bool)
	for _, role := range []string{coordinator, server, worker, workerHigh} {
		if role != workerHigh || l.high() > 0 {
			named[class(l.role(role).Priority)] = true
		}
	}
	var all []*scheduling.PriorityClass
	for _, c := range []struct {
		name  string
		value int32
		about string
	}{
		{classHigh, 100000, "Coordinators and parameter servers of training runs, and workers that are to preempt others."},
		{classLow, -100000, "Workers of training runs that give way."},
	} {
		if named[c.name] {
			all = append(all, &scheduling.PriorityClass{
				TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
				ObjectMeta: metav1.ObjectMeta{Name: c.name, Labels: map[string]string{"app.kubernetes.io/managed-by": manager}},
				Value:      c.value, Description: c.about,
			})
		}
	}
	return all
}
