package shards

// UserSeed is for tests that listen at a coordinator's server.
var UserSeed = userSeed
