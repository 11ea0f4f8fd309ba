import MediaCore
import RoomKit
import Threading
import Tiles

/// The main thread's loop: waits for pictures and keys, and draws when there is something new.
///
/// It sleeps in SDL until a picture, a key or the window wakes it, and once a second for the captions. Drawing waits
/// for the screen's refresh, and all pictures that come meanwhile are drawn at once.
final class Viewer {
    private static let captionInterval = Duration.seconds(1)
    private static let noticeTime = Duration.seconds(4)

    private let session: RoomSession
    private let window: ViewWindow
    private let painter: ScenePainter
    private let roomName: String
    private var tiles: [Tile] = []
    private var selection = TileSelection()
    /// What the tracks were asked for; `nil` if each is wanted at its full size.
    private var needs: TileNeeds?
    private var showsCaptions = true
    private var notice: (number: Int, until: MonotonicInstant?) = (0, nil)
    private var title = ""
    private var isJoined = false
    private var nextCaptions = MonotonicClock.now
    /// Whether what the window shows is no longer right.
    private var isStale = true

    /// Prepares to show `session` in `window`, with every track at its full size or as large as its tile.
    init(of session: RoomSession, in window: ViewWindow, roomName: String, atFullSize: Bool) throws {
        self.session = session
        self.window = window
        self.roomName = roomName
        needs = atFullSize ? nil : TileNeeds()
        painter = try ScenePainter(for: window, roomName: roomName)
    }

    /// Shows the room until somebody quits or the session ends.
    ///
    /// - Throws: Why the session ended, unless somebody wanted it.
    func run() throws {
        while true {
            let now = MonotonicClock.now
            let wait = nextCaptions > now ? nextCaptions.duration(since: now) : .zero
            for event in window.events(within: wait) where !handle(event) { return }
            session.bell.heard()
            let scene = session.now
            switch scene.ending {
            case .wanted?: return
            case .failed(let error)?: throw error
            case nil: break
            }
            update(scene)
            askForNeeds()
            if isStale, window.isVisible {
                isStale = false
                let notice = notice.until == nil ? nil : scene.notice.text
                let waiting = scene.isJoined ? "waiting for tracks" : "joining the room"
                painter.paint(shownTiles, waiting: waiting, showsCaptions: showsCaptions, notice: notice)
            }
        }
    }

    /// The tiles that are shown: all, or one alone.
    private var shownTiles: [Tile] {
        let shown = Set(selection.shown(of: tiles.map(\.sid)))
        return tiles.filter { shown.contains($0.sid) }
    }

    // MARK: What is new

    private func update(_ scene: RoomSession.Scene) {
        if !tiles.elementsEqual(scene.views, by: { $0.view === $1 }) {
            let known = tiles
            tiles = scene.views.map { view in known.first { $0.view === view } ?? Tile(view) }
            isStale = true
        }
        if scene.isJoined != isJoined {
            isJoined = scene.isJoined
            isStale = true
        }
        let now = MonotonicClock.now
        for tile in tiles where tile.takePicture() { isStale = true }
        if now >= nextCaptions {
            nextCaptions = now + Self.captionInterval
            for tile in tiles where tile.refreshCaption(isHeldBack: scene.heldBack.contains(tile.sid)) {
                isStale = true
            }
        }
        if scene.notice.number != notice.number {
            notice = (scene.notice.number, now + Self.noticeTime)
            isStale = true
        } else if let until = notice.until, now >= until {
            notice.until = nil
            isStale = true
        }
        updateTitle()
    }

    private func updateTitle() {
        let shown = shownTiles
        var title = roomName
        if shown.count == 1, let track = shown.first?.view.track {
            title = "\(track.publisherIdentity)/\(track.name) - \(roomName)"
        }
        guard title != self.title else { return }
        self.title = title
        window.setTitle(title)
    }

    /// Asks for pictures as large as their tiles, and for none of tiles that nobody sees.
    private func askForNeeds() {
        let shown = window.isVisible ? shownTiles : []
        var wanted = Dictionary(tiles.map { ($0.sid, TileNeeds.Need.nothing) }) { $1 }
        for (tile, place) in zip(shown, painter.places(of: shown)) { wanted[tile.sid] = .pictures(place.dimensions) }
        guard let changes = needs?.changes(to: wanted, at: MonotonicClock.now) else { return }
        for tile in tiles {
            guard let need = changes[tile.sid] else { continue }
            session.ask(for: need, of: tile.view.track)
            if tile.isHidden != (need == .nothing) { tile.isHidden.toggle() }
        }
    }

    // MARK: Keys

    /// Does what an event asks for; `false` if it is to quit.
    private func handle(_ event: WindowEvent) -> Bool {
        let tracks = tiles.map(\.sid)
        switch event {
        case .quit: return false
        case .escape:
            guard window.isFullScreen else { return false }
            window.isFullScreen = false
        case .exposed: break
        case .toggleFullScreen: window.isFullScreen.toggle()
        case .toggleCaptions: showsCaptions.toggle()
        case .snapshot: session.save(shownTiles.compactMap { tile in tile.frame.map { ($0, tile.view.track) } })
        case .showAll: selection.showAll()
        case .show(let number): selection.show(number, of: tracks)
        case .step(let forward): selection.step(forward: forward, of: tracks)
        }
        isStale = true
        return true
    }
}
