package member

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// kubeadm keeps the cluster's configuration of kubelets there.
const (
	kubeletConfig      = "kubelet-config"
	kubeletConfigField = "kubelet"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// KubeletConfiguration returns the declared configuration of all kubelets of
// the cluster.
func KubeletConfiguration(ctx context.Context, c *kubernetes.Client) (map[string]any, error) {
	var m core.ConfigMap
	err := get(ctx, c, configMaps, "kube-system", kubeletConfig, &m)
	var document map[string]any
	if err == nil {
		err = yaml.Unmarshal([]byte(m.Data[kubeletConfigField]), &document)
	}
	if err == nil && len(document) == 0 {
		err = fmt.Errorf("it has no field %s", kubeletConfigField)
	}
	if err != nil {
		return nil, fmt.Errorf("read the ConfigMap kube-system/%s: %w", kubeletConfig, err)
	}
	return document, nil
}
