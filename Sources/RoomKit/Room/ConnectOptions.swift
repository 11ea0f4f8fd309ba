import Glibc
public import MediaCore
import RoomProtocol

/// Where to connect, as whom, and with which tracks.
public struct ConnectOptions: Sendable {
    /// The server, as `ws://host:port`; `wss://` is not supported yet.
    ///
    /// The path of the room, `/rooms/NAME`, is added to a URL without a path.
    public var url = "ws://127.0.0.1:8480"
    /// The room; the server makes it for its first participant.
    ///
    /// A name has 1 to 128 bytes of UTF-8 without control characters; the server refuses others.
    public var roomName: String
    /// The name under which this program joins, with the same limits as `roomName`.
    ///
    /// It is unique in the room: a second participant of the same name replaces the first.
    public var identity: String
    /// The access token, if the server wants one; servers of version 0.1 read none.
    public var accessToken: String?
    /// Tracks that are published right after joining, one after the other, with default options.
    public var videoTracks: [LocalVideoTrack] = []
    /// Whether every track of the others is subscribed to as it is published.
    public var isAutomaticSubscriptionEnabled = true
    /// How many tracks are received at once; 0 for none.
    ///
    /// Each takes a thread and a decoder, and the other participants decide how many there are. A further track is given
    /// up with `RoomEvent.trackSubscriptionFailed`; when another one has ended, `Room.subscribe(to:)` asks for it again.
    public var maximumReceivedTracks = 32
    /// What the server logs as this client's program and version.
    public var clientName = "RoomKit/\(roomKitVersion)"

    /// Options for `roomName`, under the name of this machine with four random characters.
    public init(roomName: String) {
        self.roomName = roomName
        self.identity = Self.makeIdentity()
    }

    /// Options with an access token, filled in by `build`, which must set `roomName`.
    public init(token: String, _ build: (inout ConnectOptions) -> Void) {
        self.init(roomName: "")
        self.accessToken = token
        build(&self)
    }

    /// The name of this machine with four random characters.
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
    /// The rate that the encoder aims at, all temporal layers together; `nil` for the size's usual one.
    ///
    /// Brought to between 10 kbit/s and 1 Gbit/s. The usual one is 1.7 Mbit/s up to 640x480, and 2.5 Mbit/s above 960x540.
    public var maxBitrate: Bitrate?

    /// The largest pictures that can be published and received, by their number of pixels.
    public static var maximumDimensions: Dimensions { TrackCodec.forPublishing.maximumDimensions }

    /// Options by default.
    public init() {}
}
