package connect

// Configured is what the server of a linked-in provider may offer beside the
// protocol, once it is configured: how its objects are reached. Commands ask for
// it that work with one object of the state, outside of any plan.
type Configured interface {
	// SSH says how to log in on machines.
	SSH() SSHSettings
	// Cluster is the connection of objects that name none; nil: there is none.
	Cluster() *Connection
}
