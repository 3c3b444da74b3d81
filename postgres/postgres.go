// Package postgres lets a program use PostgreSQL for the ledger and for tables of rows:
//
//	import _ "github.com/sottodp/sotto/postgres"
//
// The command sotto imports it.
package postgres

import (
	"database/sql"
	"errors"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sottodp/sotto/internal/postgres"
)

func init() { postgres.Register(driver{}) }

type driver struct{}

func (driver) Open(url string, parameters map[string]string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	maps.Copy(config.RuntimeParams, parameters)
	return stdlib.OpenDB(*config), nil
}

func (driver) Code(err error) string {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return ""
	}
	return server.Code
}
