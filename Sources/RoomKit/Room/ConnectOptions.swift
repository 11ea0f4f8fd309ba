import Glibc
public import MediaCore
import RoomProtocol

/// The server, room, identity and tracks to connect with.
public struct ConnectOptions: Sendable {
    /// The server, as `ws://host:port`; `wss://` is not supported yet.
    ///
    /// If the URL has no path, the path of the room, `/rooms/NAME`, is added to it.
    public var url = "ws://127.0.0.1:8480"
    /// The room's name; the server creates the room for its first participant.
    ///
    /// A name has 1 to 128 bytes of UTF-8 without control characters; the server refuses other names.
    public var roomName: String
    /// The name under which this program joins, with the same limits as `roomName`.
    ///
    /// It is unique in the room: a second participant with the same name replaces the first.
    public var identity: String
    /// The access token, if the server requires one; servers of version 0.1 ignore it.
    public var accessToken: String?
    /// Tracks that are published right after joining, one after the other, with default options.
    public var videoTracks: [LocalVideoTrack] = []
    /// Whether this program subscribes to every track of the other participants as soon as it is published.
    public var isAutomaticSubscriptionEnabled = true
    /// The largest number of tracks that are received at once; 0 for none.
    ///
    /// Each received track takes a thread and a decoder, and the other participants decide how many tracks there are. A
    /// track above the limit is not received: `RoomEvent.trackSubscriptionFailed` reports it. When another track has
    /// ended, `Room.subscribe(to:)` asks for it again.
    public var maximumReceivedTracks = 32
    /// The program and version that the server logs for this client.
    public var clientName = "RoomKit/\(roomKitVersion)"

    /// Creates options for `roomName`; the identity is this machine's name with four random characters.
    public init(roomName: String) {
        self.roomName = roomName
        self.identity = Self.makeIdentity()
    }

    /// Creates options with an access token; `build` fills in the rest and must set `roomName`.
    public init(token: String, _ build: (inout ConnectOptions) -> Void) {
        self.init(roomName: "")
        self.accessToken = token
        build(&self)
    }

    /// Makes an identity from this machine's name and four random characters.
    public static func makeIdentity() -> String {
        var name = utsname()
        let host = unsafe uname(&name) == 0 ? hostName(name) : "client"
        let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
        let suffix = (0..<4).map { _ in letters[Int.random(in: 0..<letters.count)] }
        return "\(host)-\(String(suffix))"
    }

    private static func hostName(_ name: utsname) -> String {
        let bytes = unsafe withUnsafeBytes(of: name.nodename) { unsafe Array($0.prefix { $0 != 0 }) }
        return bytes.isEmpty ? "client" : String(decoding: bytes, as: UTF8.self)
    }
}

/// The version of this library.
public let roomKitVersion = Release.version

/// How a track is encoded.
public struct VideoPublishOptions: Sendable {
    /// The encoder's target bitrate for all temporal layers together; `nil` for the default of the picture's size.
    ///
    /// It is clamped to 10 kbit/s to 1 Gbit/s. The default is 1.7 Mbit/s up to 640x480, and 2.5 Mbit/s above 960x540. A
    /// server ends the session of a publisher that sends more than 50 Mbit/s in the long run, unless its
    /// `media.trackRate` is set to another limit. With packet headers, and frames that come out larger than planned,
    /// 40 Mbit/s stay below that; 3840x2160 at 30 fps takes some 30.
    public var maxBitrate: Bitrate?

    /// The limit for pictures that are published or received: they may have at most as many pixels as this size has.
    public static var maximumDimensions: Dimensions { TrackCodec.forPublishing.maximumDimensions }

    /// Creates default options.
    public init() {}
}
