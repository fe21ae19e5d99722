"""Addresses: which a source's host may have. A name is resolved once, every address that it has must be allowed, and one of those is connected to.

So a name that is made to point into the own network, or that points elsewhere a moment later, is not followed (reliability S7).
"""

from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from socket import AF_INET
from typing import Final, TypeAlias

from aiohttp import ThreadedResolver
from aiohttp.abc import AbstractResolver, ResolveResult

from pipeline.errors import PermanentError

Network: TypeAlias = IPv4Network | IPv6Network
_NAT64: Final = IPv6Network("64:ff9b::/96")


def allowed(address: str, networks: Collection[Network]) -> bool:
    """Whether an address is public, or in one of the networks that are allowed; so is each address that it stands for."""
    try:
        plain = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(any(one in network for network in networks) or _is_public(one) for one in _stands_for(plain))


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast


def _stands_for(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the address, or the one that is written inside of it and is what is reached."""
    if isinstance(address, IPv4Address):
        yield address
    elif address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64:
        yield IPv4Address(int(address) & 0xFFFFFFFF)
    else:
        yield address
        yield from [address.sixtofour] if address.sixtofour is not None else []
        yield from address.teredo or ()


class AllowedAddresses(AbstractResolver):
    """Resolves names to addresses that are allowed, all of them, or not at all."""

    def __init__(self, networks: Collection[Network], resolver: AbstractResolver | None = None) -> None:
        """Take the networks that are allowed though they are not public."""
        self._networks = networks
        self._resolver = resolver or ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: int = AF_INET) -> list[ResolveResult]:
        """Return the addresses of a name.

        Raises:
            PermanentError: one of them is not allowed.
            OSError: it has none.
        """
        found = await self._resolver.resolve(host, port, family)  # type: ignore[arg-type] # aiohttp hands on its own numbers
        if not all(allowed(one["host"], self._networks) for one in found):
            raise PermanentError("the host has an address that is not public, and that no network under networks holds")
        return found

    async def close(self) -> None:
        """Let go of what the resolver holds."""
        await self._resolver.close()
