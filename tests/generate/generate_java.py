"""A small catalogue in Java: what the scripted agent answers, and stubs of the frameworks it imports."""

from __future__ import annotations

BASE = "src/main/java/com/example/catalog"

PRODUCT = """\
package com.example.catalog;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.util.UUID;

@Entity
@Table(schema = "app", name = "products")
public class Product {
    @Id
    private Long id;

    @Column(name = "public_id", nullable = false, updatable = false)
    private UUID publicId;

    @Column(name = "tenant_id", nullable = false, updatable = false)
    private Long tenantId;

    @Column(name = "name", nullable = false)
    private String name;

    protected Product() {}

    public Product(UUID publicId, Long tenantId, String name) {
        this.publicId = publicId;
        this.tenantId = tenantId;
        this.name = name;
    }

    public UUID publicId() {
        return publicId;
    }

    public Long tenantId() {
        return tenantId;
    }

    public String name() {
        return name;
    }
}
"""

REPOSITORY = """\
package com.example.catalog;

import java.util.Optional;
import java.util.UUID;

public interface ProductRepository {
    Optional<Product> findByTenantIdAndPublicId(Long tenantId, UUID publicId);

    Product save(Product product);
}
"""

SERVICE = """\
package com.example.catalog;

import java.util.NoSuchElementException;
import java.util.UUID;
import org.springframework.stereotype.Service;

@Service
public class ProductService {
    private final ProductRepository products;

    public ProductService(ProductRepository products) {
        this.products = products;
    }

    public String nameOf(Long tenantId, UUID publicId) {
        return products.findByTenantIdAndPublicId(tenantId, publicId)
            .map(Product::name)
            .orElseThrow(() -> new NoSuchElementException("no product " + publicId));
    }
}
"""

CONTROLLER = """\
package com.example.catalog;

import java.util.UUID;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

@RestController
public class ProductController {
    private final ProductService service;

    public ProductController(ProductService service) {
        this.service = service;
    }

    @GetMapping("/api/v1/products/{id}")
    public String name(@PathVariable("id") UUID id) {
        return service.nameOf(1L, id);
    }
}
"""

TEST = """\
package com.example.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.UUID;
import org.junit.jupiter.api.Test;

class ProductTest {
    @Test
    void aProductKeepsItsName() {
        assertEquals("Tea", new Product(UUID.randomUUID(), 1L, "Tea").name());
    }
}
"""

FILES = {
    "domain": {f"{BASE}/Product.java": PRODUCT, f"{BASE}/ProductRepository.java": REPOSITORY},
    "service": {f"{BASE}/ProductService.java": SERVICE},
    "api": {f"{BASE}/ProductController.java": CONTROLLER},
    "tests": {"src/test/java/com/example/catalog/ProductTest.java": TEST},
}


def _annotation(package: str, name: str, body: str = "") -> tuple[str, str]:
    return (
        f"{package.replace('.', '/')}/{name}.java",
        f"package {package};\n\npublic @interface {name} {{ {body} }}\n",
    )


STUBS = dict(
    [
        _annotation("jakarta.persistence", "Entity"),
        _annotation("jakarta.persistence", "Id"),
        _annotation("jakarta.persistence", "Table", 'String schema() default ""; String name() default "";'),
        _annotation(
            "jakarta.persistence",
            "Column",
            'String name() default ""; boolean nullable() default true; boolean updatable() default true;',
        ),
        _annotation("org.springframework.stereotype", "Service"),
        _annotation("org.springframework.web.bind.annotation", "RestController"),
        _annotation("org.springframework.web.bind.annotation", "GetMapping", "String value();"),
        _annotation("org.springframework.web.bind.annotation", "PathVariable", "String value();"),
        _annotation("org.junit.jupiter.api", "Test"),
        (
            "org/junit/jupiter/api/Assertions.java",
            """package org.junit.jupiter.api;

public class Assertions {
    public static void assertEquals(Object a, Object b) {}
}
""",
        ),
    ]
)
