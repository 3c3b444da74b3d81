// Package shards trains on rows that lie in parts on several machines of one owner: a coordinator, which is a run as any
// other, and workers, each with a shard. Both are one trust domain. What passes between them is sealed by package
// oracle/remote; this package carries it, over a NATS server inside the coordinator's process that only holders of the
// key file can reach. It serves no one else (R22).
package shards
