-- +goose NO TRANSACTION
-- +goose Up

-- What a process may keep in memory, and how it learns that it is stale: whoever changes what lies behind a mark raises it in the
-- same transaction. 'catalogue' and 'promotions' count changes; 'reservations' is the Unix millisecond until which one may be held.
CREATE TABLE IF NOT EXISTS marks (
  name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO marks (name, version) VALUES ('catalogue', 1), ('promotions', 1), ('reservations', 0);

-- A product at a special price. site '' is the whole fleet; quota is in units, per_user in units for each person.
CREATE TABLE IF NOT EXISTS promotions (
  promotion_id BIGINT NOT NULL PRIMARY KEY,
  name VARCHAR(200) NOT NULL,
  product_id BIGINT NOT NULL,
  price_minor BIGINT NOT NULL,
  quota BIGINT NOT NULL,
  per_user BIGINT NOT NULL,
  needs_claim BOOLEAN NOT NULL,
  site VARCHAR(200) NOT NULL DEFAULT '',
  starts_at DATETIME(3) NOT NULL,
  ends_at DATETIME(3) NOT NULL,
  claim_ttl_s INT NOT NULL,
  way VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  KEY promotions_state (state, ends_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Apart from promotions, since it is the one hot row. taken = what held claims have left + uses that were not given back +
-- what open leases have left.
CREATE TABLE IF NOT EXISTS promotion_quota (
  promotion_id BIGINT NOT NULL PRIMARY KEY,
  quota BIGINT NOT NULL,
  taken BIGINT NOT NULL,
  CONSTRAINT promotion_quota_kept CHECK (taken >= 0 AND taken <= quota)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Units that a person holds or has used. A row is written by compare-and-set on its version.
CREATE TABLE IF NOT EXISTS promotion_users (
  promotion_id BIGINT NOT NULL,
  user_id BIGINT NOT NULL,
  taken BIGINT NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (promotion_id, user_id),
  CONSTRAINT promotion_users_not_negative CHECK (taken >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- left_quantity is what no door has used yet. reason says why a claim is refused that was answered with 202 first. epoch, bucket and
-- the stream's position are those of a claim that came through Redis.
CREATE TABLE IF NOT EXISTS claims (
  claim_id BIGINT NOT NULL PRIMARY KEY,
  promotion_id BIGINT NOT NULL,
  user_id BIGINT NOT NULL,
  token_id BINARY(16) NOT NULL,
  app VARCHAR(200) NOT NULL,
  quantity BIGINT NOT NULL,
  left_quantity BIGINT NOT NULL,
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  reason VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
  epoch BIGINT NULL,
  bucket INT NULL,
  stream_ms BIGINT NULL,
  stream_no BIGINT NULL,
  expires_at DATETIME(3) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  UNIQUE KEY claims_token (promotion_id, token_id),
  KEY claims_user (user_id, state),
  KEY claims_overdue (state, expires_at),
  KEY claims_position (promotion_id, epoch, bucket, stream_ms, stream_no),
  CONSTRAINT claims_left CHECK (left_quantity >= 0 AND left_quantity <= quantity)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Units that an order has at a promotion's price; claim_id 0 where the promotion needs none.
CREATE TABLE IF NOT EXISTS promotion_uses (
  device_id BIGINT NOT NULL,
  order_id BIGINT NOT NULL,
  promotion_id BIGINT NOT NULL,
  claim_id BIGINT NOT NULL,
  user_id BIGINT NOT NULL,
  product_id BIGINT NOT NULL,
  quantity BIGINT NOT NULL,
  given_back BIGINT NOT NULL DEFAULT 0,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, order_id, promotion_id, claim_id),
  KEY promotion_uses_promotion (promotion_id, user_id),
  CONSTRAINT promotion_uses_kept CHECK (quantity > 0 AND given_back >= 0 AND given_back <= quantity)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One life of a promotion's counters in Redis: warming (being loaded), open, draining (its units went back, its stream may hold claims) or done.
CREATE TABLE IF NOT EXISTS promotion_epochs (
  promotion_id BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  buckets INT NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (promotion_id, epoch),
  KEY promotion_epochs_state (state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Units leased to a bucket, all of them running totals; what it has left is granted - revoked - written.
CREATE TABLE IF NOT EXISTS promotion_buckets (
  promotion_id BIGINT NOT NULL,
  epoch BIGINT NOT NULL,
  bucket INT NOT NULL,
  granted BIGINT NOT NULL,
  revoked BIGINT NOT NULL,
  written BIGINT NOT NULL,
  PRIMARY KEY (promotion_id, epoch, bucket),
  CONSTRAINT promotion_buckets_left CHECK (granted >= revoked + written AND revoked >= 0 AND written >= 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What order tokens are signed with; every process of an installation shares it.
CREATE TABLE IF NOT EXISTS order_token_keys (
  key_id INT NOT NULL PRIMARY KEY,
  secret BINARY(32) NOT NULL,
  created_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS order_token_keys;
DROP TABLE IF EXISTS promotion_buckets;
DROP TABLE IF EXISTS promotion_epochs;
DROP TABLE IF EXISTS promotion_uses;
DROP TABLE IF EXISTS claims;
DROP TABLE IF EXISTS promotion_users;
DROP TABLE IF EXISTS promotion_quota;
DROP TABLE IF EXISTS promotions;
DROP TABLE IF EXISTS marks;
