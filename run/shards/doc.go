// Package shards trains on rows in parts on several machines of one owner: a coordinator, which is an
// ordinary run, and workers, each with a shard. Both are one trust domain. Package oracle/remote seals
// the messages between them; this package carries them over a connection of each worker to the
// coordinator. Only holders of the key file can open one, and it carries nothing else (R22).
package shards
