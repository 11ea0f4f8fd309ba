package import MediaCore

/// The constants of the wire format that both ends must agree on; `docs/protocol.md` gives the reasons.
package enum WireFormat {
    /// The protocol version that this code speaks.
    package static let version = 1

    /// The WebSocket subprotocol of that version.
    package static let subprotocol = "room.v1"

    /// The longest binary message, header included.
    ///
    /// A frame is cut into messages of at most this size, so that signaling and other tracks get a turn between them.
    /// With its WebSocket header such a message still fits one TLS record of 16 KiB (RFC 8446, section 5.1).
    package static let maximumBinaryMessage = DataSize(bytes: 16_000)

    /// The fewest payload bytes of a packet that is not its frame's last.
    ///
    /// A receiver has a cost for each packet, whatever its size. Without a bound, a publisher could cut its frames into
    /// millions of packets of one byte.
    package static let minimumChunk = DataSize(bytes: 1_024)

    /// The longest text message.
    package static let maximumTextMessage = DataSize.kibibytes(64)

    /// The largest compressed frame.
    ///
    /// A keyframe of 1920x1080 at the finest quantiser stays below 2 MB (measured on noise with libvpx).
    package static let maximumFrame = DataSize.mebibytes(4)

    /// The most bytes of a close frame's reason, in UTF-8 (RFC 6455, section 5.5: 125 bytes, of which the code takes
    /// 2).
    package static let maximumCloseReasonBytes = 123

    /// The most bytes in a room's, participant's or track's name.
    package static let maximumNameBytes = 128

    /// What is wrong with the name of a room, participant or track, such as "is empty"; `nil` if it can be used.
    package static func problem(withName name: String) -> String? {
        if name.isEmpty { return "is empty" }
        if name.utf8.count > maximumNameBytes {
            return "has \(name.utf8.count) bytes; \(maximumNameBytes) are allowed"
        }
        let hasControl = name.unicodeScalars.contains { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) }
        return hasControl ? "has control characters" : nil
    }

    /// The most tracks that one participant may publish at a time.
    package static let maximumTracksPerParticipant = 16

    /// The most separate encodings of a track.
    package static let maximumSimulcastLayers = 3
}

extension StringProtocol {
    /// The beginning of the string with at most `count` bytes in UTF-8, cut between two Unicode scalars.
    ///
    /// `prefix` counts characters, and a single character can be of any length.
    package func prefix(utf8Bytes count: Int) -> String {
        guard utf8.count > count else { return String(self) }
        var result = String.UnicodeScalarView()
        var bytes = 0
        for scalar in unicodeScalars {
            bytes += UTF8.width(scalar)
            guard bytes <= count else { break }
            result.append(scalar)
        }
        return String(result)
    }
}

/// A point in room time: microseconds on the server's monotonic clock.
package struct RoomTime: Hashable, Comparable, Sendable {
    /// Microseconds since the origin of the server's monotonic clock.
    package var microseconds: Int64

    /// The point `microseconds` after the origin.
    package init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// The time from `earlier` to this point; negative if `earlier` is later.
    package func duration(since earlier: RoomTime) -> Duration {
        .microseconds(microseconds &- earlier.microseconds)
    }

    /// Whether `lhs` comes before `rhs`.
    package static func < (lhs: RoomTime, rhs: RoomTime) -> Bool { lhs.microseconds < rhs.microseconds }
}
