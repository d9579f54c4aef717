-- +goose NO TRANSACTION
-- +goose Up

-- Where `doortab archive` puts what is old: the columns of the live tables, and the indexes that somebody still asks.
CREATE TABLE IF NOT EXISTS orders_archive (
  order_id BIGINT NOT NULL PRIMARY KEY,
  device_id BIGINT NOT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id BIGINT NULL,
  app VARCHAR(200) NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  total_minor BIGINT NOT NULL,
  created_at DATETIME(3) NOT NULL,
  KEY orders_archive_device (device_id, order_id),
  KEY orders_archive_user (user_id, order_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS order_lines_archive (
  device_id BIGINT NOT NULL,
  order_id BIGINT NOT NULL,
  line INT NOT NULL,
  origin VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  product_id BIGINT NOT NULL,
  quantity BIGINT NOT NULL,
  unit_price_minor BIGINT NOT NULL,
  amount_minor BIGINT NOT NULL,
  evidence BLOB NOT NULL,
  PRIMARY KEY (device_id, order_id, line)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The keys are for a review of an old restock door, and for a stock-take as of an old event (R13).
CREATE TABLE IF NOT EXISTS stock_movements_archive (
  device_id BIGINT NOT NULL,
  product_id BIGINT NOT NULL,
  version BIGINT NOT NULL,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  quantity BIGINT NOT NULL,
  delta BIGINT NOT NULL,
  balance BIGINT NOT NULL,
  ref VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq BIGINT NULL,
  seq_epoch INT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, product_id, version),
  KEY stock_movements_archive_ref (device_id, ref),
  KEY stock_movements_archive_seq (device_id, seq_epoch, seq)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The payload of a settlement is in one of two places: its own row, or here, and '' there. Key, digest and receipt stay.
CREATE TABLE IF NOT EXISTS settlement_payloads_archive (
  device_id BIGINT NOT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  payload MEDIUMBLOB NOT NULL,
  PRIMARY KEY (device_id, close_event_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS conflict_payloads_archive (
  device_id BIGINT NOT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest BINARY(32) NOT NULL,
  payload MEDIUMBLOB NOT NULL,
  PRIMARY KEY (device_id, close_event_id, digest)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
-- What was archived goes back first: without it the books would not add up. The empty tables are for a second run.
CREATE TABLE IF NOT EXISTS orders_archive LIKE orders;
CREATE TABLE IF NOT EXISTS order_lines_archive LIKE order_lines;
CREATE TABLE IF NOT EXISTS stock_movements_archive LIKE stock_movements;
CREATE TABLE IF NOT EXISTS settlement_payloads_archive LIKE settlements;
CREATE TABLE IF NOT EXISTS conflict_payloads_archive LIKE settlement_conflicts;

INSERT INTO orders (order_id, device_id, close_event_id, user_id, app, status, currency, total_minor, created_at)
SELECT order_id, device_id, close_event_id, user_id, app, status, currency, total_minor, created_at FROM orders_archive
ON DUPLICATE KEY UPDATE order_id = VALUES(order_id);

INSERT INTO order_lines (device_id, order_id, line, origin, product_id, quantity, unit_price_minor, amount_minor, evidence)
SELECT device_id, order_id, line, origin, product_id, quantity, unit_price_minor, amount_minor, evidence FROM order_lines_archive
ON DUPLICATE KEY UPDATE line = VALUES(line);

INSERT INTO stock_movements (device_id, product_id, version, kind, quantity, delta, balance, ref, seq, seq_epoch, created_at)
SELECT device_id, product_id, version, kind, quantity, delta, balance, ref, seq, seq_epoch, created_at FROM stock_movements_archive
ON DUPLICATE KEY UPDATE version = VALUES(version);

UPDATE settlements s JOIN settlement_payloads_archive p ON p.device_id = s.device_id AND p.close_event_id = s.close_event_id
SET s.payload = p.payload;

UPDATE settlement_conflicts c JOIN conflict_payloads_archive p
ON p.device_id = c.device_id AND p.close_event_id = c.close_event_id AND p.digest = c.digest
SET c.payload = p.payload;

DROP TABLE IF EXISTS conflict_payloads_archive;
DROP TABLE IF EXISTS settlement_payloads_archive;
DROP TABLE IF EXISTS stock_movements_archive;
DROP TABLE IF EXISTS order_lines_archive;
DROP TABLE IF EXISTS orders_archive;
