package gcptest

import (
	"google.golang.org/grpc/codes"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// checkPool refuses what Google refuses of a pool that is to be made.
func (c *Cloud) checkPool(k *cluster, d *containerpb.NodePool) error {
	n := d.GetConfig()
	if d.GetInitialNodeCount() < 0 {
		return invalid("NodePool.initial_node_count must not be negative.")
	}
	if err := checkLabels(n.GetResourceLabels()); err != nil {
		return err
	}
	if err := checkAutoscaling(d.GetAutoscaling()); err != nil {
		return err
	}
	if err := checkProvisioning(d); err != nil {
		return err
	}
	if d.GetManagement() != nil {
		if err := checkManagement(k.proto, n, d.GetManagement()); err != nil {
			return err
		}
	}
	if err := checkUpgrade(d); err != nil {
		return err
	}
	if err := checkPods(d.GetMaxPodsConstraint()); err != nil {
		return err
	}
	if name := d.GetNetworkConfig().GetPodRange(); name != k.proto.GetIpAllocationPolicy().GetClusterSecondaryRangeName() && !d.GetNetworkConfig().GetCreatePodRange() {
		if err := c.checkRangeName(k.proto, regionOf(k.location), "NodePool.network_config.pod_range", name); err != nil {
			return err
		}
	}
	for _, zone := range d.GetLocations() {
		if _, ok := c.options.Zones[zone]; !ok || regionOf(zone) != regionOf(k.location) {
			return invalid("NodePool.locations: zone %q is not in region %q.", zone, regionOf(k.location))
		}
		if err := c.checkMachine(zone, n); err != nil {
			return err
		}
	}
	return nil
}

func checkAutoscaling(a *containerpb.NodePoolAutoscaling) error {
	perZone := a.GetMinNodeCount() != 0 || a.GetMaxNodeCount() != 0
	inAll := a.GetTotalMinNodeCount() != 0 || a.GetTotalMaxNodeCount() != 0
	switch {
	case a == nil:
		return nil
	case !a.GetEnabled() && (perZone || inAll):
		return invalid("Autoscaling limits may only be set when autoscaling is enabled.")
	case a.GetEnabled() && perZone && inAll:
		return invalid("Only one of per-zone and total node limits can be set.")
	case a.GetEnabled() && !perZone && !inAll:
		return invalid("Autoscaling requires max_node_count or total_max_node_count.")
	case a.GetMinNodeCount() > a.GetMaxNodeCount() || a.GetTotalMinNodeCount() > a.GetTotalMaxNodeCount():
		return invalid("Autoscaling minimum must not be greater than the maximum.")
	}
	return nil
}

// checkManagement refuses to go without upgrades or repairs in a release
// channel. Flex-start machines are never repaired, so that is let through.
func checkManagement(k *containerpb.Cluster, n *containerpb.NodeConfig, m *containerpb.NodeManagement) error {
	channel := k.GetReleaseChannel().GetChannel()
	if channel == containerpb.ReleaseChannel_UNSPECIFIED {
		return nil
	}
	if !m.GetAutoUpgrade() || (!m.GetAutoRepair() && !n.GetFlexStart()) {
		return detailed(codes.InvalidArgument, "Auto_upgrade and auto_repair cannot be false when release_channel "+channel.String()+" is set.")
	}
	return nil
}

// shortLived tells whether a pool upgrades by the strategy that is for flex-start and
// queued pools, and for no others (NodePoolUpdateStrategy of the container API).
func shortLived(d *containerpb.NodePool) bool {
	return d.GetConfig().GetFlexStart() || d.GetQueuedProvisioning().GetEnabled()
}

func checkUpgrade(d *containerpb.NodePool) error {
	u := d.GetUpgradeSettings()
	if short := u.GetStrategy() == containerpb.NodePoolUpdateStrategy_SHORT_LIVED; u != nil && short != shortLived(d) {
		return invalid("Upgrade strategy %s is not supported for this node pool.", u.GetStrategy())
	} else if u == nil || short || u.GetStrategy() == containerpb.NodePoolUpdateStrategy_BLUE_GREEN {
		return nil
	}
	if u.GetMaxSurge()+u.GetMaxUnavailable() <= 0 {
		return invalid("Max_surge and max_unavailable cannot both be zero.")
	}
	return nil
}

// checkProvisioning keeps the rules of where machines come from.
func checkProvisioning(d *containerpb.NodePool) error {
	n := d.GetConfig()
	reserved := n.GetReservationAffinity().GetConsumeReservationType()
	none := reserved == containerpb.ReservationAffinity_NO_RESERVATION || reserved == containerpb.ReservationAffinity_UNSPECIFIED
	queued, flex, spot := d.GetQueuedProvisioning().GetEnabled(), n.GetFlexStart(), n.GetSpot() || n.GetPreemptible()
	compact := d.GetPlacementPolicy().GetType() == containerpb.NodePool_PlacementPolicy_COMPACT
	blueGreen := d.GetUpgradeSettings().GetStrategy() == containerpb.NodePoolUpdateStrategy_BLUE_GREEN
	switch {
	case n.GetSpot() && n.GetPreemptible():
		return invalid("Spot and preemptible cannot both be set.")
	case spot && !none:
		return invalid("Spot VMs cannot consume reservations.")
	case flex && spot:
		return invalid("Flex-start cannot be used with Spot VMs.")
	case flex && reserved != containerpb.ReservationAffinity_NO_RESERVATION:
		return invalid("Flex-start requires reservation affinity NO_RESERVATION.")
	case flex && d.GetInitialNodeCount() > 0 && !d.GetAutoscaling().GetEnabled():
		return invalid("Flex-start requires autoscaling to be enabled.")
	case flex && d.GetManagement().GetAutoRepair():
		return invalid("Auto repair must be disabled for flex-start node pools.")
	case queued && spot:
		return invalid("Queued provisioning cannot be used with Spot VMs.")
	case queued && reserved != containerpb.ReservationAffinity_NO_RESERVATION:
		return invalid("Queued provisioning requires reservation affinity NO_RESERVATION.")
	case queued && (!d.GetAutoscaling().GetEnabled() || d.GetAutoscaling().GetTotalMinNodeCount() != 0):
		return invalid("Queued provisioning requires autoscaling with total_min_node_count 0.")
	case queued && compact:
		return invalid("Queued provisioning cannot be used with compact placement.")
	case compact && len(d.GetLocations()) != 1:
		return invalid("Compact placement requires exactly one zone.")
	case compact && blueGreen:
		return invalid("Compact placement cannot be used with blue-green upgrades.")
	case n.GetLocalNvmeSsdBlockConfig().GetLocalSsdCount() > 0 && n.GetEphemeralStorageLocalSsdConfig().GetLocalSsdCount() > 0:
		return invalid("Only one of local_nvme_ssd_block_config and ephemeral_storage_local_ssd_config can be set.")
	case len(n.GetSecondaryBootDisks()) > 0 && !n.GetGcfsConfig().GetEnabled():
		return invalid("Secondary boot disks require image streaming to be enabled.")
	case reserved == containerpb.ReservationAffinity_SPECIFIC_RESERVATION && (n.GetReservationAffinity().GetKey() == "" || len(n.GetReservationAffinity().GetValues()) == 0):
		return invalid("A specific reservation requires a key and a value.")
	}
	return nil
}
