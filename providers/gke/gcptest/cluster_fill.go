package gcptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	compute "google.golang.org/api/compute/v1"
	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Versions are what GetServerConfig offers, newest first.
var Versions = []string{"1.36.2-gke.1400", "1.36.1-gke.1100", "1.35.6-gke.1250", "1.34.9-gke.1700"}

// channels are the default versions of the release channels.
var channels = map[containerpb.ReleaseChannel_Channel]string{
	containerpb.ReleaseChannel_RAPID:    Versions[0],
	containerpb.ReleaseChannel_REGULAR:  Versions[2],
	containerpb.ReleaseChannel_STABLE:   Versions[3],
	containerpb.ReleaseChannel_EXTENDED: Versions[2],
}

// resolve is the version that a request means: "" and "-" the default, "latest",
// a whole version, or the newest one of "1.36" or "1.36.1".
func resolve(version, standard string) (string, error) {
	switch version {
	case "", "-":
		return standard, nil
	case "latest":
		return Versions[0], nil
	}
	for _, v := range Versions {
		if v == version || strings.HasPrefix(v, version+".") || strings.HasPrefix(v, version+"-gke.") {
			return v, nil
		}
	}
	return "", invalid("Master version %q is unsupported.", version)
}

// fillCluster checks a declared cluster and adds what the server adds. The
// provider must not touch the values that this adds.
func (c *Cloud) fillCluster(k *cluster, p *containerpb.Cluster) error {
	channel := p.GetReleaseChannel().GetChannel()
	if p.GetReleaseChannel() == nil {
		channel = containerpb.ReleaseChannel_REGULAR
		p.ReleaseChannel = &containerpb.ReleaseChannel{Channel: channel}
	}
	standard := channels[channel]
	if standard == "" {
		standard = channels[containerpb.ReleaseChannel_REGULAR]
	}
	version, err := resolve(p.GetInitialClusterVersion(), standard)
	if err != nil {
		return err
	}
	if err := checkLabels(p.GetResourceLabels()); err != nil {
		return err
	}
	if err := checkPods(p.GetDefaultMaxPodsConstraint()); err != nil {
		return err
	}
	if err := c.checkWorkloadPool(p.GetWorkloadIdentityConfig()); err != nil {
		return err
	}
	if err := c.fillLocations(k, p); err != nil {
		return err
	}
	p.InitialClusterVersion, p.CurrentMasterVersion, p.InitialNodeCount = version, version, 0
	p.Status = containerpb.Cluster_PROVISIONING
	p.CreateTime = c.now()
	p.Id = hash(16, k.path, p.CreateTime) + hash(16, "id", k.path)
	p.Location, p.Zone = k.location, k.location
	p.SelfLink = containerURL + inZones(k.path)
	if err := c.fillNetwork(k, p); err != nil {
		return err
	}
	fillAddons(p)
	// A cluster is made with this driver, whatever was asked for; an update switches it off.
	p.AddonsConfig.GcePersistentDiskCsiDriverConfig = &containerpb.GcePersistentDiskCsiDriverConfig{Enabled: true}
	c.fillEndpoint(k, p)
	fillFeatures(p)
	k.proto = p
	return nil
}

func (c *Cloud) fillLocations(k *cluster, p *containerpb.Cluster) error {
	if len(p.GetLocations()) == 0 {
		p.Locations = c.zonesOf(k.location)
		p.Locations = p.Locations[:min(len(p.Locations), 3)]
		return nil
	}
	for _, zone := range p.GetLocations() {
		if _, ok := c.options.Zones[zone]; !ok || regionOf(zone) != regionOf(k.location) {
			return invalid("Cluster.locations: zone %q is not in region %q.", zone, regionOf(k.location))
		}
	}
	if isZone(k.location) && !slices.Contains(p.GetLocations(), k.location) {
		return invalid("Cluster.locations must contain the cluster's zone %q.", k.location)
	}
	slices.Sort(p.Locations)
	return nil
}

func (c *Cloud) fillNetwork(k *cluster, p *containerpb.Cluster) error {
	standard(&p.Network, "default")
	standard(&p.Subnetwork, last(p.Network)) // as networks with automatic subnetworks have it
	if p.NetworkConfig == nil {
		p.NetworkConfig = &containerpb.NetworkConfig{}
	}
	project := c.options.Project
	if parts := strings.Split(p.Network, "/"); len(parts) > 2 && parts[0] == "projects" {
		project = parts[1]
	}
	if project != c.options.Project && !slices.Contains(c.options.HostProjects, project) {
		return invalid("Network %q: project %q does not share its networks.", p.Network, project)
	}
	network, err := c.networkOf(project, last(p.Network))
	if err != nil {
		return invalid("Network %q does not exist.", p.Network)
	}
	if !slices.ContainsFunc(c.subnetworks(project, regionOf(k.location)), func(one *compute.Subnetwork) bool {
		return one.Name == last(p.Subnetwork) && one.Network == network.SelfLink
	}) {
		return invalid("Subnetwork %q does not exist in network %q and region %q.", p.Subnetwork, p.Network, regionOf(k.location))
	}
	host := "projects/" + project
	p.NetworkConfig.Network = host + "/global/networks/" + last(p.Network)
	p.NetworkConfig.Subnetwork = host + "/regions/" + regionOf(k.location) + "/subnetworks/" + last(p.Subnetwork)
	p.Network, p.Subnetwork = last(p.Network), last(p.Subnetwork)
	set(&p.NetworkConfig.DefaultSnatStatus, &containerpb.DefaultSnatStatus{})
	set(&p.NetworkConfig.ServiceExternalIpsConfig, &containerpb.ServiceExternalIPsConfig{})
	if p.GetPrivateClusterConfig().GetEnablePrivateNodes() { // the older field is still honoured; false is not written
		set(&p.NetworkConfig.DefaultEnablePrivateNodes, proto.Bool(true))
	}
	n := len(c.clusters) % 200
	set(&p.IpAllocationPolicy, &containerpb.IPAllocationPolicy{})
	ip := p.IpAllocationPolicy
	ip.UseIpAliases = true
	standard(&ip.ClusterIpv4CidrBlock, fmt.Sprintf("10.%d.0.0/17", 20+n))
	standard(&ip.ServicesIpv4CidrBlock, "34.118.224.0/20")
	for field, name := range map[string]string{"cluster_secondary_range_name": ip.ClusterSecondaryRangeName, "services_secondary_range_name": ip.ServicesSecondaryRangeName} {
		if err := c.checkRangeName(p, regionOf(k.location), "Cluster.ip_allocation_policy."+field, name); err != nil {
			return err
		}
	}
	standard(&ip.ClusterSecondaryRangeName, "gke-"+k.name+"-pods-"+hash(8, k.path))
	ip.StackType = max(ip.StackType, containerpb.StackType_IPV4)
	p.ClusterIpv4Cidr, p.ServicesIpv4Cidr = ip.ClusterIpv4CidrBlock, ip.ServicesIpv4CidrBlock
	set(&p.DefaultMaxPodsConstraint, &containerpb.MaxPodsConstraint{MaxPodsPerNode: 110})
	return nil
}

// checkWorkloadPool refuses any but the project's own: workload_pool of
// google_container_cluster in terraform-provider-google.
func (c *Cloud) checkWorkloadPool(w *containerpb.WorkloadIdentityConfig) error {
	if own := c.options.Project + ".svc.id.goog"; w.GetWorkloadPool() != "" && w.GetWorkloadPool() != own {
		return invalid("Invalid workload pool %q: must be %q.", w.GetWorkloadPool(), own)
	}
	return nil
}

func fillAddons(p *containerpb.Cluster) {
	set(&p.AddonsConfig, &containerpb.AddonsConfig{})
	a := p.AddonsConfig
	set(&a.KubernetesDashboard, &containerpb.KubernetesDashboard{Disabled: true}) // still answered
	set(&a.NetworkPolicyConfig, &containerpb.NetworkPolicyConfig{Disabled: true})
	set(&a.DnsCacheConfig, &containerpb.DnsCacheConfig{Enabled: true})
	set(&a.NodeReadinessConfig, &containerpb.NodeReadinessConfig{})
}

// fillEndpoint is where the cluster's API is reached.
func (c *Cloud) fillEndpoint(k *cluster, p *containerpb.Cluster) {
	endpoint, ca := c.options.APIServer.Endpoint, c.options.APIServer.CA
	standard(&endpoint, fmt.Sprintf("34.%d.%d.10", 60+len(c.clusters)%100, number(k.path)%250))
	if ca == nil {
		ca = inventedCA()
	}
	p.Endpoint = endpoint
	p.MasterAuth = &containerpb.MasterAuth{ClusterCaCertificate: base64.StdEncoding.EncodeToString(ca), ClientCertificateConfig: &containerpb.ClientCertificateConfig{}}
	set(&p.ControlPlaneEndpointsConfig, &containerpb.ControlPlaneEndpointsConfig{})
	set(&p.ControlPlaneEndpointsConfig.DnsEndpointConfig, &containerpb.ControlPlaneEndpointsConfig_DNSEndpointConfig{})
	dns := p.ControlPlaneEndpointsConfig.DnsEndpointConfig
	set(&dns.AllowExternalTraffic, proto.Bool(false))
	set(&dns.EnableK8STokensViaDns, proto.Bool(false))
	set(&dns.EnableK8SCertsViaDns, proto.Bool(false))
	dns.Endpoint = fmt.Sprintf("gke-%s-%s.%s.gke.goog", hash(16, k.path), c.projectNumber(), regionOf(k.location))
	set(&p.ControlPlaneEndpointsConfig.IpEndpointsConfig, &containerpb.ControlPlaneEndpointsConfig_IPEndpointsConfig{})
	ip := p.ControlPlaneEndpointsConfig.IpEndpointsConfig
	set(&ip.Enabled, proto.Bool(true))
	set(&ip.EnablePublicEndpoint, proto.Bool(true))
	if p.GetMasterAuthorizedNetworksConfig() != nil { // the older field is still honoured
		set(&ip.AuthorizedNetworksConfig, p.MasterAuthorizedNetworksConfig) // see above
	}
	set(&ip.AuthorizedNetworksConfig, &containerpb.MasterAuthorizedNetworksConfig{})
	set(&ip.AuthorizedNetworksConfig.GcpPublicCidrsAccessEnabled, proto.Bool(true))
	ip.PublicEndpoint, ip.PrivateEndpoint = endpoint, fmt.Sprintf("10.128.0.%d", 2+len(c.clusters)%250)
	c.mirror(p)
}

// mirror repeats the endpoints in the older fields that still show them.
func (c *Cloud) mirror(p *containerpb.Cluster) {
	ip := p.GetControlPlaneEndpointsConfig().GetIpEndpointsConfig()
	p.MasterAuthorizedNetworksConfig = ip.GetAuthorizedNetworksConfig() // still answered
	set(&p.PrivateClusterConfig, &containerpb.PrivateClusterConfig{})
	p.PrivateClusterConfig.PublicEndpoint = ip.GetPublicEndpoint()                                  // still answered
	p.PrivateClusterConfig.PrivateEndpoint = ip.GetPrivateEndpoint()                                // still answered
	p.PrivateClusterConfig.EnablePrivateEndpoint = !ip.GetEnablePublicEndpoint()                    // still answered
	p.PrivateClusterConfig.EnablePrivateNodes = p.GetNetworkConfig().GetDefaultEnablePrivateNodes() // still answered
}

func fillFeatures(p *containerpb.Cluster) {
	logs := []containerpb.LoggingComponentConfig_Component{containerpb.LoggingComponentConfig_SYSTEM_COMPONENTS, containerpb.LoggingComponentConfig_WORKLOADS}
	set(&p.LoggingConfig, &containerpb.LoggingConfig{ComponentConfig: &containerpb.LoggingComponentConfig{EnableComponents: logs}})
	set(&p.MonitoringConfig, &containerpb.MonitoringConfig{ComponentConfig: &containerpb.MonitoringComponentConfig{EnableComponents: []containerpb.MonitoringComponentConfig_Component{
		containerpb.MonitoringComponentConfig_SYSTEM_COMPONENTS, containerpb.MonitoringComponentConfig_STORAGE, containerpb.MonitoringComponentConfig_HPA,
		containerpb.MonitoringComponentConfig_POD, containerpb.MonitoringComponentConfig_DAEMONSET, containerpb.MonitoringComponentConfig_DEPLOYMENT,
		containerpb.MonitoringComponentConfig_STATEFULSET, containerpb.MonitoringComponentConfig_CADVISOR, containerpb.MonitoringComponentConfig_KUBELET,
		containerpb.MonitoringComponentConfig_DCGM, containerpb.MonitoringComponentConfig_JOBSET,
	}}})
	set(&p.MonitoringConfig.AdvancedDatapathObservabilityConfig, &containerpb.AdvancedDatapathObservabilityConfig{})
	set(&p.MonitoringConfig.ManagedPrometheusConfig, &containerpb.ManagedPrometheusConfig{Enabled: true})
	standard(&p.LoggingService, "logging.googleapis.com/kubernetes")
	standard(&p.MonitoringService, "monitoring.googleapis.com/kubernetes")
	set(&p.DatabaseEncryption, &containerpb.DatabaseEncryption{State: containerpb.DatabaseEncryption_DECRYPTED, CurrentState: containerpb.DatabaseEncryption_CURRENT_STATE_DECRYPTED.Enum()})
	set(&p.ShieldedNodes, &containerpb.ShieldedNodes{Enabled: true})
	set(&p.Autoscaling, &containerpb.ClusterAutoscaling{AutoscalingProfile: containerpb.ClusterAutoscaling_BALANCED})
	set(&p.Autoscaling.AutoprovisioningNodePoolDefaults, &containerpb.AutoprovisioningNodePoolDefaults{
		ImageType: "COS_CONTAINERD", ServiceAccount: "default", OauthScopes: defaultScopes, Management: &containerpb.NodeManagement{AutoRepair: true, AutoUpgrade: true},
	})
	set(&p.LegacyAbac, &containerpb.LegacyAbac{})
	fillOthers(p)
	set(&p.NodePoolDefaults, &containerpb.NodePoolDefaults{NodeConfigDefaults: &containerpb.NodeConfigDefaults{NodeKubeletConfig: closedPort(), LoggingConfig: &containerpb.NodePoolLoggingConfig{VariantConfig: &containerpb.LoggingVariantConfig{Variant: containerpb.LoggingVariantConfig_DEFAULT}}}})
	set(&p.SecurityPostureConfig, &containerpb.SecurityPostureConfig{Mode: containerpb.SecurityPostureConfig_BASIC.Enum(), VulnerabilityMode: containerpb.SecurityPostureConfig_VULNERABILITY_MODE_UNSPECIFIED.Enum()})
	set(&p.MaintenancePolicy, &containerpb.MaintenancePolicy{})
	version(p.MaintenancePolicy)
}

// closedPort is what a cluster has its kubelets do, since GKE 1.32.
func closedPort() *containerpb.NodeKubeletConfig {
	return &containerpb.NodeKubeletConfig{InsecureKubeletReadonlyPortEnabled: proto.Bool(false)}
}

// fillOthers adds the fields that the provider has no arguments for.
func fillOthers(p *containerpb.Cluster) {
	set(&p.AnonymousAuthenticationConfig, &containerpb.AnonymousAuthenticationConfig{Mode: containerpb.AnonymousAuthenticationConfig_LIMITED})
	set(&p.Autopilot, &containerpb.Autopilot{})
	set(&p.BinaryAuthorization, &containerpb.BinaryAuthorization{})
	set(&p.ControlPlaneEgress, &containerpb.ControlPlaneEgress{Mode: containerpb.ControlPlaneEgress_VIA_CONTROL_PLANE})
	set(&p.EnterpriseConfig, &containerpb.EnterpriseConfig{ClusterTier: containerpb.EnterpriseConfig_STANDARD})
	set(&p.NodeCreationConfig, &containerpb.NodeCreationConfig{NodeCreationMode: containerpb.NodeCreationConfig_VIA_KUBELET})
	set(&p.NodePoolAutoConfig, &containerpb.NodePoolAutoConfig{NodeKubeletConfig: closedPort()})
	set(&p.NotificationConfig, &containerpb.NotificationConfig{Pubsub: &containerpb.NotificationConfig_PubSub{}})
	set(&p.PodAutoscaling, &containerpb.PodAutoscaling{HpaProfile: containerpb.PodAutoscaling_PERFORMANCE.Enum()})
	set(&p.RbacBindingConfig, &containerpb.RBACBindingConfig{EnableInsecureBindingSystemUnauthenticated: proto.Bool(true), EnableInsecureBindingSystemAuthenticated: proto.Bool(true)})
	set(&p.UserManagedKeysConfig, &containerpb.UserManagedKeysConfig{})
	ip := p.IpAllocationPolicy
	set(&ip.NetworkTierConfig, &containerpb.NetworkTierConfig{NetworkTier: containerpb.NetworkTierConfig_NETWORK_TIER_DEFAULT})
	set(&ip.PodCidrOverprovisionConfig, &containerpb.PodCIDROverprovisionConfig{})
	ip.ClusterIpv4Cidr, ip.ServicesIpv4Cidr = ip.ClusterIpv4CidrBlock, ip.ServicesIpv4CidrBlock //nolint:staticcheck // still answered
}

// set fills in what is not set.
func set[T any](field **T, value *T) {
	if *field == nil {
		*field = value
	}
}

// standard fills in what is zero.
func standard[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

var validName = pattern.New(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)

func checkName(field, name string) error {
	if validName.MatchString(name) {
		return nil
	}
	// The words are those of pulumi/pulumi-gcp#1510.
	return invalid("Invalid value for field %q: %q. Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?)' (only lowercase alphanumerics and '-' allowed, must start with a letter and end with an alphanumeric, and must be no longer than 40 characters).", field, name)
}

// inventedCA is a certificate that nobody's server has.
var inventedCA = sync.OnceValue(func() []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gcptest"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
})
