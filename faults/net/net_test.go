package net

import (
	_ "github.com/Shopify/toxiproxy/v2"
	_ "github.com/anishathalye/porcupine"
	_ "github.com/jackc/pgx/v5"
	_ "github.com/pacht-queue/pacht/postgres"
	_ "github.com/pacht-queue/pacht/sqlite"
	_ "go.uber.org/goleak"
	_ "pgregory.net/rapid"
)
