-- +goose NO TRANSACTION
-- +goose Up
-- MySQL commits each DDL statement by itself, so each one must bear to run twice.

-- Names this installation, so that a shared Redis never answers for another database.
CREATE TABLE IF NOT EXISTS installation (
  installation_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  created_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT INTO installation (installation_id, created_at)
SELECT UUID(), UTC_TIMESTAMP(3) FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM installation);

CREATE TABLE IF NOT EXISTS products (
  product_id BIGINT NOT NULL PRIMARY KEY,
  sku VARCHAR(64) NOT NULL,
  gtin VARCHAR(14) NULL,
  gtin14 CHAR(14) NULL,
  name VARCHAR(200) NOT NULL,
  price_minor BIGINT NOT NULL,
  unit_weight_g INT NULL,
  weight_tolerance_g INT NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  UNIQUE KEY products_sku (sku),
  UNIQUE KEY products_gtin14 (gtin14),
  CONSTRAINT products_price CHECK (price_minor >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- R8: the price in force at a moment is the newest row not after it.
CREATE TABLE IF NOT EXISTS product_prices (
  product_id BIGINT NOT NULL,
  valid_from DATETIME(3) NOT NULL,
  price_minor BIGINT NOT NULL,
  PRIMARY KEY (product_id, valid_from)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS cabinets (
  device_id BIGINT NOT NULL PRIMARY KEY,
  name VARCHAR(200) NOT NULL,
  site VARCHAR(200) NOT NULL DEFAULT '',
  secret_hash BINARY(32) NULL,
  mosquitto_hash VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NULL,
  secret_changed_at DATETIME(3) NULL,
  locked BOOLEAN NOT NULL DEFAULT FALSE,
  online BOOLEAN NOT NULL DEFAULT FALSE,
  boot_id VARCHAR(64) NOT NULL DEFAULT '',
  last_seen_at DATETIME(3) NULL,
  temperature_c DECIMAL(6,2) NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  KEY cabinets_secret_changed (secret_changed_at),
  KEY cabinets_site (site, device_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Apart from cabinets, so that status changes and settlements never wait for each other.
CREATE TABLE IF NOT EXISTS cabinet_sequences (
  device_id BIGINT NOT NULL PRIMARY KEY,
  epoch INT NOT NULL DEFAULT 0,
  last_seq BIGINT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS lanes (
  device_id BIGINT NOT NULL,
  lane INT NOT NULL,
  product_id BIGINT NOT NULL,
  capacity INT NOT NULL,
  par_level INT NOT NULL,
  PRIMARY KEY (device_id, lane)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS device_stock (
  device_id BIGINT NOT NULL,
  product_id BIGINT NOT NULL,
  stock BIGINT NOT NULL,
  version BIGINT NOT NULL,
  counted_seq BIGINT NULL,
  counted_epoch INT NOT NULL DEFAULT 0,
  updated_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, product_id),
  CONSTRAINT device_stock_not_negative CHECK (stock >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- R12. quantity is what physically happened (-2: two taken), delta what it did to the books.
CREATE TABLE IF NOT EXISTS stock_movements (
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
  KEY stock_movements_ref (device_id, ref),
  KEY stock_movements_seq (device_id, seq_epoch, seq),
  KEY stock_movements_newest (device_id, created_at, product_id, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS restocks (
  device_id BIGINT NOT NULL,
  restock_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  note VARCHAR(500) NOT NULL DEFAULT '',
  actor VARCHAR(64) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, restock_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- R1: this row is the truth about an event. kind and user_id are those that counted (R11), priced_at is when the prices
-- were in force (R8): the door session's where the event has one, session_id.
CREATE TABLE IF NOT EXISTS settlements (
  device_id BIGINT NOT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  outcome VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest BINARY(32) NOT NULL,
  order_id BIGINT NULL,
  seq BIGINT NULL,
  seq_epoch INT NULL,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id BIGINT NULL,
  session_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  priced_at DATETIME(3) NOT NULL,
  payload MEDIUMBLOB NOT NULL,
  receipt MEDIUMBLOB NOT NULL,
  received_at DATETIME(3) NOT NULL,
  settled_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, close_event_id),
  KEY settlements_newest (received_at, device_id, close_event_id),
  KEY settlements_outcome_newest (outcome, received_at, device_id, close_event_id),
  KEY settlements_device_newest (device_id, received_at, close_event_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- R3: each distinct other content of an event, once.
CREATE TABLE IF NOT EXISTS settlement_conflicts (
  device_id BIGINT NOT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  digest BINARY(32) NOT NULL,
  payload MEDIUMBLOB NOT NULL,
  received_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, close_event_id, digest)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS orders (
  order_id BIGINT NOT NULL PRIMARY KEY,
  device_id BIGINT NOT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id BIGINT NULL,
  app VARCHAR(200) NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  currency CHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  total_minor BIGINT NOT NULL,
  created_at DATETIME(3) NOT NULL,
  KEY orders_device (device_id, order_id),
  KEY orders_user (user_id, order_id),
  KEY orders_status (status, order_id),
  KEY orders_app (app, order_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS order_lines (
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

CREATE TABLE IF NOT EXISTS reviews (
  review_id BIGINT NOT NULL PRIMARY KEY,
  device_id BIGINT NOT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_id BIGINT NULL,
  conflict_digest BINARY(32) NULL,
  reasons BLOB NOT NULL,
  proposed MEDIUMBLOB NOT NULL,
  evidence MEDIUMBLOB NOT NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  note VARCHAR(500) NOT NULL DEFAULT '',
  resolved_by VARCHAR(64) NOT NULL DEFAULT '',
  resolved_at DATETIME(3) NULL,
  created_at DATETIME(3) NOT NULL,
  KEY reviews_status (status, review_id),
  KEY reviews_event (device_id, close_event_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One for each movement that left the books and the shelf apart.
CREATE TABLE IF NOT EXISTS discrepancies (
  device_id BIGINT NOT NULL,
  product_id BIGINT NOT NULL,
  version BIGINT NOT NULL,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  quantity BIGINT NOT NULL,
  ref VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, product_id, version),
  KEY discrepancies_newest (created_at, device_id, product_id, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The same message again raises copies: a cabinet resends for ever what nobody answers.
CREATE TABLE IF NOT EXISTS dead_letters (
  dead_letter_id BIGINT NOT NULL PRIMARY KEY,
  fingerprint BINARY(32) NOT NULL,
  topic VARCHAR(255) NOT NULL,
  device_id BIGINT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  payload MEDIUMBLOB NOT NULL,
  size BIGINT NOT NULL,
  digest BINARY(32) NOT NULL,
  reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  detail VARCHAR(500) NOT NULL,
  copies BIGINT NOT NULL,
  received_at DATETIME(3) NOT NULL,
  last_received_at DATETIME(3) NOT NULL,
  UNIQUE KEY dead_letters_fingerprint (fingerprint)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS api_tokens (
  token_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  name VARCHAR(200) NOT NULL,
  role VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token_hash BINARY(32) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  UNIQUE KEY api_tokens_hash (token_hash)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS idempotency_keys (
  token_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  scope_hash BINARY(32) NOT NULL,
  request_hash BINARY(32) NOT NULL,
  status SMALLINT NOT NULL,
  answer MEDIUMBLOB NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (token_id, scope_hash),
  KEY idempotency_keys_age (created_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS idempotency_keys;
DROP TABLE IF EXISTS api_tokens;
DROP TABLE IF EXISTS dead_letters;
DROP TABLE IF EXISTS discrepancies;
DROP TABLE IF EXISTS reviews;
DROP TABLE IF EXISTS order_lines;
DROP TABLE IF EXISTS orders;
DROP TABLE IF EXISTS settlement_conflicts;
DROP TABLE IF EXISTS settlements;
DROP TABLE IF EXISTS restocks;
DROP TABLE IF EXISTS stock_movements;
DROP TABLE IF EXISTS device_stock;
DROP TABLE IF EXISTS lanes;
DROP TABLE IF EXISTS cabinet_sequences;
DROP TABLE IF EXISTS cabinets;
DROP TABLE IF EXISTS product_prices;
DROP TABLE IF EXISTS products;
DROP TABLE IF EXISTS installation;
