// Package shards trains on rows in parts on several machines of one owner: a coordinator, which is an
// ordinary run, and workers, each with a shard. Both are one trust domain. Package oracle/remote seals
// the messages between them; this package carries them over a NATS server inside the coordinator's
// process. Only holders of the key file can reach the server, and it serves no one else (R22).
package shards
