-- +goose NO TRANSACTION
-- +goose Up

-- Whoever changes a reservation or its lines raises its version, by compare-and-set: of a pick-up and the expiry one wins.
CREATE TABLE IF NOT EXISTS reservations (
  device_id BIGINT NOT NULL,
  reservation_id BIGINT NOT NULL,
  user_id BIGINT NOT NULL,
  app VARCHAR(200) NOT NULL,
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  version BIGINT NOT NULL,
  until_at DATETIME(3) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, reservation_id),
  UNIQUE KEY reservations_id (reservation_id),
  KEY reservations_held (device_id, state, user_id),
  KEY reservations_user (user_id, reservation_id),
  KEY reservations_overdue (state, until_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- left_quantity is what its shopper has not taken yet.
CREATE TABLE IF NOT EXISTS reservation_lines (
  device_id BIGINT NOT NULL,
  reservation_id BIGINT NOT NULL,
  product_id BIGINT NOT NULL,
  quantity BIGINT NOT NULL,
  left_quantity BIGINT NOT NULL,
  PRIMARY KEY (device_id, reservation_id, product_id),
  CONSTRAINT reservation_lines_left CHECK (left_quantity >= 0 AND left_quantity <= quantity)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Beside the ledger: book stock and its version don't move. reserved = what held reservations have left.
CREATE TABLE IF NOT EXISTS reserved_stock (
  device_id BIGINT NOT NULL,
  product_id BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  PRIMARY KEY (device_id, product_id),
  CONSTRAINT reserved_stock_not_negative CHECK (reserved >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS reserved_stock;
DROP TABLE IF EXISTS reservation_lines;
DROP TABLE IF EXISTS reservations;
