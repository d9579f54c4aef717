-- +goose NO TRANSACTION
-- +goose Up

-- One comparison of what is counted with the rows that it counts.
CREATE TABLE IF NOT EXISTS reconciliations (
  run_id BIGINT NOT NULL PRIMARY KEY,
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  origin VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  started_by VARCHAR(200) NOT NULL,
  everything BOOLEAN NOT NULL,
  repairs BOOLEAN NOT NULL,
  promotions BIGINT NOT NULL DEFAULT 0,
  found BIGINT NOT NULL DEFAULT 0,
  repaired BIGINT NOT NULL DEFAULT 0,
  behind BIGINT NOT NULL DEFAULT 0,
  detail VARCHAR(1000) NOT NULL DEFAULT '',
  created_at DATETIME(3) NOT NULL,
  started_at DATETIME(3) NULL,
  ended_at DATETIME(3) NULL,
  KEY reconciliations_state (state, run_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- promotion_id 0: of reservations. target names table and key.
CREATE TABLE IF NOT EXISTS reconciliation_findings (
  run_id BIGINT NOT NULL,
  number INT NOT NULL,
  promotion_id BIGINT NOT NULL,
  cause VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target VARCHAR(300) NOT NULL,
  counted BIGINT NOT NULL,
  due BIGINT NOT NULL,
  repaired BOOLEAN NOT NULL,
  PRIMARY KEY (run_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS reconciliation_findings;
DROP TABLE IF EXISTS reconciliations;
