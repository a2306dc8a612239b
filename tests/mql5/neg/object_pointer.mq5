// translate: object pointers are not translated
class CThing
  {
public:
   int               x;
  };
void OnStart()
  {
   CThing *thing=new CThing();
   Print(thing.x);
  }
